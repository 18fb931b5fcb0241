#!/bin/bash
# Starts one replica. A database that runs is joined. When none runs, the replica with the last transaction begins, and the others join it.
# Which one that is, they ask each other at port 4569; while one of them is silent none begins, for that one could have the last transaction.
set -euo pipefail
members="db-0 db-1 db-2"
data=/data/db
mariadbd=(mariadbd --defaults-file=/config/galera.cnf "--wsrep-node-name=$HOSTNAME" "--wsrep-node-address=$HOSTNAME.db")

# What the volume of this replica has: `empty`, `damaged` by a copy that did not end, or `at HISTORY NUMBER`, its last transaction.
position() {
  local history number
  [ -e $data/grastate.dat ] || { echo empty; return; }
  history=$(sed -n 's/^uuid: *//p' $data/grastate.dat)
  number=$(sed -n 's/^seqno: *//p' $data/grastate.dat)
  [ "$history" != 00000000-0000-0000-0000-000000000000 ] || { echo damaged; return; }
  # A replica that crashed wrote no number there. InnoDB has it, and says it only with the options of wsrep.
  if [ "$number" = -1 ]; then
    "${mariadbd[@]}" --wsrep-recover --log-error=/tmp/recover.log
    number=$(sed -n "s/.*Recovered position: $history://p" /tmp/recover.log | tail -n 1)
  fi
  [ -n "$number" ] && echo "at $history $number" || echo damaged
}

# What the others hear: `starting`, the position of a replica that waits, `running`, or `cut` of one that runs, but was in a majority before.
answer() {
  local status
  status=$(mariadb --defaults-file=/config/galera.cnf -NBe "SHOW STATUS LIKE 'wsrep_cluster_status'" 2> /dev/null | cut -f 2) || true
  if [ "$status" = Primary ]; then echo running
  elif [ -n "$status" ] && [ -e $data/gvwstate.dat ]; then echo cut
  else cat /tmp/position; fi
}
[ "${1-}" != answer ] || { answer; exit; }

ask() {
  if [ "$1" = "$HOSTNAME" ]; then cat /tmp/position; else timeout 5 socat -u "TCP:$1.db:4569,connect-timeout=3" - 2> /dev/null; fi
}

# Asks all and prints what to do: `join MEMBER`, `rejoin MEMBER`, `begin MEMBER` or `wait for WHAT`.
decide() {
  local member state history number silent='' damaged='' empty='' histories='' leader='' most=-1 cut=''
  for member in $members; do
    # The word of an administrator: its volume is lost, and so are transactions that it alone had.
    ! grep -qsx "$member" /tmp/gone || continue
    read -r state history number < <(ask "$member") || state=silent
    case $state in
      running) echo "join $member"; return ;;
      cut) cut=$member ;;
      at)
        [[ " $histories " == *" $history "* ]] || histories+=" $history"
        if [ "$number" -gt "$most" ]; then most=$number leader=$member; fi
        ;;
      empty) empty=${empty:-$member} ;;
      damaged) damaged+=" $member" ;;
      *) silent+=" $member" ;;
    esac
  done
  if [ -n "$silent" ]; then echo "wait for$silent"
  # Replicas that crashed remember the last majority, and form it again with one that went on.
  elif [ -n "$cut" ]; then echo "rejoin $cut"
  elif [ "$(wc -w <<< "$histories")" -gt 1 ]; then echo "wait for a decision: these volumes are of different databases:$histories"
  elif [ -n "$leader" ]; then echo "begin $leader"
  elif [ -n "$damaged" ]; then echo "wait for a decision: there is no whole copy, and a part of one on:$damaged"
  else echo "begin $empty"; fi
}

trap 'exit 0' TERM
mkdir -p $data
echo starting > /tmp/position
position > /tmp/found
cp /tmp/found /tmp/position
echo "start: this volume: $(cat /tmp/position)"
# Others copy to a name, which a new pod gets after a moment.
until getent hosts "$HOSTNAME.db" > /dev/null; do sleep 1; done
socat TCP-LISTEN:4569,fork,reuseaddr EXEC:'bash /config/start.sh answer' &

begin() {
  echo starting > /tmp/position
  if [ ! -e $data/mysql ]; then
    rm -rf /data/new
    mariadb-install-db --no-defaults --datadir=/data/new --tmpdir=/tmp --innodb-log-file-size=8M --skip-test-db --auth-root-socket-user=mysql > /tmp/install.log
    rmdir $data
    mv /data/new $data
  fi
  rm -f $data/gvwstate.dat
  [ ! -e $data/grastate.dat ] || sed -i 's/^safe_to_bootstrap:.*/safe_to_bootstrap: 1/' $data/grastate.dat
  exec "${mariadbd[@]}" --wsrep-new-cluster
}

told=''
while true; do
  next=$(decide)
  [ "$next" = "$told" ] || echo "start: $next"
  told=$next
  case $next in
    "begin $HOSTNAME") begin ;;
    join*)
      echo starting > /tmp/position
      exec "${mariadbd[@]}"
      ;;
    rejoin*)
      echo cut > /tmp/position
      exec "${mariadbd[@]}"
      ;;
  esac
  sleep 1
done
