# Stops a server and removes its private folder when the process that started this script is gone.
#
# $1 signal that ends the server cleanly, $2 tenths of a second to wait for that, $3 "remove" or "keep" the
# folder, $4 the folder, $5 log. Standard input is a pipe whose other end that process alone keeps open; on
# it come lines:
#   step PID     a program of the initialising runs: nothing it has made is worth anything
#   server PID   the server runs
#   none         it has ended and was collected
#   done         all is stopped and removed; there is nothing left to do
# The end of input without "done" means that the process was killed. Standard output is a locked file, so
# the folder counts as in use until this script ends.

trap '' HUP INT TERM

kind= child=
while read -r word value; do
    case $word in
    step | server) kind=$word child=$value ;;
    none) kind= child= ;;
    done) exit 0 ;;
    esac
done

# A process that has ended but was not collected (state Z) takes signals, and is dead all the same.
alive() {
    kill -0 "$child" 2>/dev/null || return 1
    [ -r "/proc/$child/status" ] || return 0
    while read -r key state rest; do
        [ "$key" = State: ] && break
    done <"/proc/$child/status" 2>/dev/null
    [ "$state" != Z ]
}

# Waits until the process is dead, at most $1 tenths of a second.
wait_for_end() {
    left=$1
    while alive && [ "$left" -gt 0 ]; do
        sleep 0.1
        left=$((left - 1))
    done
}

# Kills the processes that work in the server's folders and have no terminal, so that no one's shell is
# meant: a child may have left the group and go on for long with what it was asked.
kill_strays() {
    for process in /proc/[0-9]*; do
        place=$(readlink "$process/cwd" 2>/dev/null) || continue
        case $place/ in
        "$1"/data/* | "$1"/tmp/*) ;;
        *) continue ;;
        esac
        read -r stat 2>/dev/null <"$process/stat" || continue
        # Behind the name in brackets: state, parent, group, session, terminal.
        set -- "$1" ${stat##*") "}
        [ "$6" = 0 ] && kill -s KILL "${process#/proc/}" 2>/dev/null
        set -- "$1"
    done
}

if [ "$kind" = server ] && alive; then
    echo "annvil: the process that started this server is gone; the server is being stopped" >>"$5"
    kill -s "$1" "$child" 2>/dev/null
    wait_for_end "$2"
fi
if [ -n "$child" ]; then
    # Whatever is left of its process group, the process itself included.
    kill -s KILL -- "-$child" 2>/dev/null
    wait_for_end 100
    kill_strays "$4"
fi

# Processes that are just ending may write until then.
tries=50
while [ "$3" = remove ] && [ -e "$4" ] && [ "$tries" -gt 0 ]; do
    rm -rf -- "$4" 2>/dev/null || sleep 0.1
    tries=$((tries - 1))
done
