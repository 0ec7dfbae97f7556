/* Loads rows (id BIGINT, v VECTOR) into MariaDB as a C program would, with MariaDB's own client library.
 *
 * load_mariadb HOST PORT USER DATABASE TABLE FILE ROWS DIM BATCH multi|bulk
 *
 * FILE holds ROWS x DIM little-endian float32. multi: one prepared INSERT with BATCH rows of places; the library sends
 * all values of a statement in one packet. bulk: one prepared INSERT with one row of places, values bound as arrays, sent
 * by COM_STMT_BULK_EXECUTE. Each batch commits by itself, as Annvil's do. Prints the seconds from the first batch to the
 * last answer; the connection is made before. Ends with 1 and a line on standard error where something fails. */

#include <errno.h>
#include <fcntl.h>
#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what, const char *why) {
    fprintf(stderr, "load_mariadb: %s: %s\n", what, why);
    exit(1);
}

static void *room(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (!memory)
        fail("memory", strerror(errno));
    return memory;
}

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The text of an INSERT with so many rows of places. */
static char *insert_text(const char *table, size_t rows) {
    char *text = room(strlen(table) + 64 + rows * 8, 1);
    char *end = text + sprintf(text, "INSERT INTO %s (id, v) VALUES ", table);
    for (size_t row = 0; row < rows; row++)
        end += sprintf(end, row ? ", (?, ?)" : "(?, ?)");
    return text;
}

static MYSQL_STMT *prepare(MYSQL *connection, const char *text) {
    MYSQL_STMT *statement = mysql_stmt_init(connection);
    if (!statement || mysql_stmt_prepare(statement, text, strlen(text)))
        fail("prepare", statement ? mysql_stmt_error(statement) : mysql_error(connection));
    return statement;
}

static void execute(MYSQL_STMT *statement) {
    if (mysql_stmt_execute(statement))
        fail("insert", mysql_stmt_error(statement));
}

/* One statement with `batch` rows of places; another, shorter one for what is left over. */
static void load_multi(MYSQL *connection, const char *table, const char *data, size_t rows, size_t width, size_t batch) {
    MYSQL_BIND *binds = room(2 * batch, sizeof *binds);
    long long *ids = room(batch, sizeof *ids);
    MYSQL_STMT *statement = NULL;
    size_t prepared = 0;
    unsigned long length = width;
    for (size_t first = 0; first < rows; first += batch) {
        size_t count = rows - first < batch ? rows - first : batch;
        for (size_t i = 0; i < count; i++) {
            ids[i] = (long long)(first + i);
            binds[2 * i].buffer_type = MYSQL_TYPE_LONGLONG;
            binds[2 * i].buffer = &ids[i];
            binds[2 * i + 1].buffer_type = MYSQL_TYPE_BLOB;
            binds[2 * i + 1].buffer = (void *)(data + (first + i) * width);
            binds[2 * i + 1].buffer_length = width;
            binds[2 * i + 1].length = &length;
        }
        if (count != prepared) {
            if (statement)
                mysql_stmt_close(statement);
            char *text = insert_text(table, count);
            statement = prepare(connection, text);
            free(text);
            prepared = count;
        }
        if (mysql_stmt_bind_param(statement, binds))
            fail("bind", mysql_stmt_error(statement));
        execute(statement);
    }
    if (statement)
        mysql_stmt_close(statement);
    free(ids);
    free(binds);
}

/* One row of places, values as arrays of `batch` rows. */
static void load_bulk(MYSQL *connection, const char *table, const char *data, size_t rows, size_t width, size_t batch) {
    MYSQL_BIND binds[2];
    memset(binds, 0, sizeof binds);
    long long *ids = room(batch, sizeof *ids);
    const char **vectors = room(batch, sizeof *vectors);
    unsigned long *lengths = room(batch, sizeof *lengths);
    char *text = insert_text(table, 1);
    MYSQL_STMT *statement = prepare(connection, text);
    free(text);
    binds[0].buffer_type = MYSQL_TYPE_LONGLONG;
    binds[0].buffer = ids;
    binds[1].buffer_type = MYSQL_TYPE_BLOB;
    binds[1].buffer = vectors;
    binds[1].length = lengths;
    for (size_t first = 0; first < rows; first += batch) {
        unsigned int count = (unsigned int)(rows - first < batch ? rows - first : batch);
        for (size_t i = 0; i < count; i++) {
            ids[i] = (long long)(first + i);
            vectors[i] = data + (first + i) * width;
            lengths[i] = width;
        }
        if (mysql_stmt_attr_set(statement, STMT_ATTR_ARRAY_SIZE, &count) || mysql_stmt_bind_param(statement, binds))
            fail("bind", mysql_stmt_error(statement));
        execute(statement);
    }
    mysql_stmt_close(statement);
    free(lengths);
    free(vectors);
    free(ids);
}

int main(int argc, char **argv) {
    if (argc != 11)
        fail("arguments", "HOST PORT USER DATABASE TABLE FILE ROWS DIM BATCH multi|bulk");
    size_t rows = strtoull(argv[7], NULL, 10), width = strtoull(argv[8], NULL, 10) * 4, batch = strtoull(argv[9], NULL, 10);
    int file = open(argv[6], O_RDONLY);
    struct stat about;
    if (file < 0 || fstat(file, &about) || (size_t)about.st_size < rows * width || !rows || !width || !batch)
        fail(argv[6], "can't be read, or is shorter than said");
    const char *data = mmap(NULL, rows * width, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED)
        fail(argv[6], strerror(errno));
    MYSQL *connection = mysql_init(NULL);
    /* Values are bytes, which VECTOR takes as they are. */
    mysql_options(connection, MYSQL_SET_CHARSET_NAME, "binary");
    if (!mysql_real_connect(connection, argv[1], argv[3], NULL, argv[4], (unsigned int)atoi(argv[2]), NULL, 0))
        fail("connect", mysql_error(connection));
    double begun = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (!strcmp(argv[10], "bulk"))
        load_bulk(connection, argv[5], data, rows, width, batch);
    else
        load_multi(connection, argv[5], data, rows, width, batch);
    printf("{\"seconds\": %.6f, \"cpu_seconds\": %.6f, \"library\": \"%s\"}\n", seconds(CLOCK_MONOTONIC) - begun,
           seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu, mysql_get_client_info());
    mysql_close(connection);
    return 0;
}
