# Stops a server and removes its private folder when the process that started this script is gone.
#
# $1 signal that ends the server cleanly, $2 tenths of a second to wait for that, $3 folder to remove or
# nothing, $4 log. Standard input is a pipe whose other end that process alone keeps open; on it come lines:
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

if [ "$kind" = server ] && alive; then
    echo "annvil: the process that started this server is gone; the server is being stopped" >>"$4"
    kill -s "$1" "$child" 2>/dev/null
    wait_for_end "$2"
fi
if [ -n "$child" ]; then
    # Whatever is left of its process group, the process itself included.
    kill -s KILL -- "-$child" 2>/dev/null
    wait_for_end 100
fi

# Processes that have left the group end by themselves soon, but may write until then.
tries=50
while [ -n "$3" ] && [ -e "$3" ] && [ "$tries" -gt 0 ]; do
    rm -rf -- "$3" 2>/dev/null || sleep 0.1
    tries=$((tries - 1))
done
