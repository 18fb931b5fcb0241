#!/bin/bash
# Starts one of two servers. A standby starts as a standby. A primary first asks the other one, which could have been promoted meanwhile, and follows it then.
set -euo pipefail
export PGDATA=/data/db PGUSER=postgres PGDATABASE=postgres PGCONNECT_TIMEOUT=3
other=$([ "$HOSTNAME" = pg-0 ] && echo pg-1.pg || echo pg-0.pg)
trap 'exit 0' TERM

# Prints `primary` or `standby`, and nothing when the other one does not answer.
role() { psql --host="$other" -AXtc "SELECT CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'primary' END" 2> /dev/null || true; }

create() {
  initdb --pgdata=/data/new --username=postgres --pwfile=<(echo "$PGPASSWORD") --auth-local=trust --auth-host=scram-sha-256 \
    --encoding=UTF8 --locale=C --data-checksums > /tmp/initdb.log
  echo "include '/config/server.conf'" >> /data/new/postgresql.conf
  echo 'host all,replication all all scram-sha-256' >> /data/new/pg_hba.conf
  mv /data/new $PGDATA
}
copy() {
  pg_basebackup --pgdata=/data/new --host="$other" --checkpoint=fast
  touch /data/new/standby.signal
  mv /data/new $PGDATA
}
# What was written to the old primary and never reached the new one goes. That one names its new timeline only after a checkpoint.
follow() {
  psql --host="$other" --command=CHECKPOINT
  pg_rewind --target-pgdata=$PGDATA --source-server="host=$other"
  touch $PGDATA/standby.signal
}

umask 077
# A pod that crashed leaves its lock, which names process 1: in every pod there is one. The volume is of one pod at a time.
rm -rf /data/new $PGDATA/postmaster.pid
# A volume that is mounted again is opened for its group, which PostgreSQL refuses.
[ ! -e $PGDATA ] || chmod 700 $PGDATA
told=''
while true; do
  if [ -e $PGDATA/standby.signal ]; then next=standby
  elif [ ! -e $PGDATA ]; then
    if [ "$(role)" = primary ]; then next=copy
    elif [ -e /tmp/new ]; then next=create
    else next="wait for a primary at $other, or for /tmp/new"; fi
  else
    case $(role) in
      primary) next=follow ;;
      standby) next=primary ;;
      *) if [ -e /tmp/alone ]; then next=primary; else next="wait for $other, or for /tmp/alone"; fi ;;
    esac
  fi
  [ "$next" = "$told" ] || echo "start: $next"
  told=$next
  case $next in
    create | copy | follow) $next; break ;;
    standby | primary) break ;;
  esac
  sleep 1
done
exec postgres -c "primary_conninfo=host=$other user=postgres password=$PGPASSWORD application_name=$HOSTNAME"
