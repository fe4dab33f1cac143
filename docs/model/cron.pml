/* cron.pml: claims of ticks, run markers, open records, settling of what a daemon left, and pauses.
 *
 * Modelled: one job with "overlap": "forbid"; daemons (internal/cron) that each see a tick due at any time, make up a claim
 * from what they know, which may be old when it lands, send it, and get the answer, or lose it and read the claim back
 * (internal/cron/store/claim.go). A claim that was given up may land later. A session is lost at any time, with its markers and
 * the registration, and made again; a marker goes alone. A daemon is killed, and its guard ends the child and writes the
 * result; or its host dies. A peer settles what has no marker. An operator pauses, is told so, and resumes. A daemon that is
 * frozen is one whose steps are late. WANTED: one of the two starts is a request (run now, retry, backfill), which no cursor
 * counts.
 *
 * A marker that goes alone, deleted by hand, is assumed to be noticed by its daemon before the next renewal counts and before
 * the child starts. A renewal reads the registration and not the markers: this is the watch's to notice.
 *
 * Not modelled: overlap "allow", "queue" and "replace", ticks that are missed, deadlines, jobs that change, run_on "all",
 * drains (compared in a claim as a pause is), two claims of one process in doubt at once.
 *
 * Time: ages, as in settle.pml. Nothing of a start is alive after KILL + M since the last renewal, and that is less than TTL.
 *
 * Properties: no start is made twice (no doubled tick); under "forbid" no two children at once; no claim lands after a pause
 * was acknowledged; no start has two results. LIVE: after CALM ticks in which nothing goes wrong each tick is decided, and has
 * one result, and nothing is open, if a daemon is up.
 *
 * Mutations, M_...: in searches.txt. Of M_FIRE and M_CURSOR either alone breaks nothing about ticks: they guard each other as
 * long as the claim stands, which is an hour at least.
 *
 * Exhausted (Spin 6.5.2):
 * cron 2.0 M states, cron-killed 0.82 M, cron-wanted 2.4 M (0.5 GB, 2 minutes on a busy machine), cron-live 3.6 M, cron-pause
 * 2.2 M.
 * Not exhausted: losses, a kill and a pause together (cron-all, cron-all-wanted).
 */
#ifndef NODES
#define NODES 2
#endif
#define TICKS 2                        /* starts: two ticks, or (WANTED) a tick and a request beside it, which no cursor counts */
#ifdef WANTED
#define LAST  1
#else
#define LAST  2
#endif
#define TTL   5                        /* and a start whose marker has gone is settled for as long */
#define TERM  2
#define KILL  3
#define M     1                        /* to schedule, kill and reap: nothing is alive after KILL + M < TTL */

/* States of a node's engine (internal/cron/loop.go, attempt of act.go). */
#define ready     0
#define claiming  1                    /* the claim is under way */
#define reading   2                    /* its answer was lost: it is read back */
#define down      3

#define NOBODY  (NODES + 1)            /* another claim than the one a node waits for, or of a former process */
#define SKIP    (NODES + 2)            /* decided: not started */

/* etcd */
byte fire[TICKS], open[TICKS], cursor, pauseRev;
bit  marker[TICKS];                       /* the run marker */
bit  paused, acked;                    /* acked: the command has ended with 0 */
byte gone[TICKS];                      /* ticks since the marker went */
byte results[TICKS];

/* nodes */
byte st[NODES], tick[NODES], rev[NODES], age[NODES];
bit  session[NODES], wire[NODES], answered[NODES], won[NODES];
bit  forbidden[NODES], offline[NODES]; /* offline: the session of the claim is over */
byte late[NODES], lateRev[NODES];      /* a claim that was given up, and may land: tick + 1 */
byte lives[NODES];

/* starts, of each tick */
byte started[TICKS], owner[TICKS], left[TICKS];
bit  child[TICKS], former[TICKS];      /* former: on a session that the node has lost */
#ifdef M_TWOTXN
byte unsaid[TICKS];
#endif

bit  good;
byte calm, losses, kills;
#ifndef LOSSES
#define LOSSES 2
#endif
#ifndef KILLS
#define KILLS  1
#endif
#ifndef PAUSES
#define PAUSES 1
#endif

#define up(i)     (st[i] != down)
#ifdef M_NOOPEN
#define busy      (marker[0] || marker[1])
#else
#define busy      (open[0] || open[1])
#endif

#ifdef M_FIRE
#define UNCLAIMED(t) 1
#else
#define UNCLAIMED(t) (fire[t] == 0)
#endif
#ifdef M_CURSOR
#define ATCURSOR(t) 1
#else
#define ATCURSOR(t) (cursor == t || t >= LAST)
#endif
#ifdef M_PAUSE
#define SAMEPAUSE(r) 1
#else
#define SAMEPAUSE(r) (pauseRev == r)
#endif
#ifdef M_FORBID                        /* judged when the claim was made up, not in it */
#define ALONE 1
#else
#define ALONE (!busy)
#endif
#ifdef M_MARKER
#define SEES(t) 1
#else
#define SEES(t) marker[t]
#endif
#ifdef M_SETTLENOW
#define SETTLED(t) 1
#else
#define SETTLED(t) (gone[t] >= TTL)
#endif

/* The one Txn of a claim (internal/cron/store/claim.go). who: the nonce, as what fire shows of it. */
inline claim(i, t, r, who, ok) {
  ok = session[i] && UNCLAIMED(t) && ATCURSOR(t) && SAMEPAUSE(r) && ALONE;   /* the marker needs the lease */
  if
  :: ok -> assert(!acked);             /* an acknowledged pause is not followed by a claim */
           fire[t] = who;
#ifndef M_NOOPEN
           open[t] = i + 1;
#endif
           marker[t] = 1; gone[t] = 0; if :: cursor == t && t < LAST -> cursor = t + 1 :: else fi
  :: else
  fi
}

inline finish(t) {
  open[t] = 0; marker[t] = 0; gone[t] = 0; results[t]++; assert(results[t] <= 1)
}
/* The result of the own start goes with the record, in one Txn. */
inline finishOwn(t) {
  if
  :: open[t] ->
#ifdef M_TWOTXN
     open[t] = 0; marker[t] = 0; gone[t] = 0; unsaid[t] = owner[t]
#else
     finish(t)
#endif
  :: else
  fi;
  owner[t] = 0; former[t] = 0; left[t] = 0
}
inline forget(i) { st[i] = ready; wire[i] = 0; answered[i] = 0; won[i] = 0; forbidden[i] = 0; offline[i] = 0; tick[i] = 0; rev[i] = 0 }
#define mine(i, t) (st[i] != ready && tick[i] == t)

proctype Node(byte i) {
  byte t; bit ok;
end:
  do
  /* A tick is due: what the claim rests on is read, and the claim sent. */
  :: d_step { st[i] == ready && session[i] && age[i] < TERM && cursor < LAST && !paused && !busy ->
       st[i] = claiming; tick[i] = cursor; rev[i] = pauseRev; wire[i] = 1 }
#ifdef WANTED
  :: d_step { st[i] == ready && session[i] && age[i] < TERM && fire[1] == 0 && !paused && !busy ->
       st[i] = claiming; tick[i] = 1; rev[i] = pauseRev; wire[i] = 1 }
#endif
#ifdef M_CURSOR
  :: d_step { st[i] == ready && session[i] && !good && cursor == 1 && !paused && !busy ->      /* it knows of an old cursor */
       st[i] = claiming; tick[i] = 0; rev[i] = pauseRev; wire[i] = 1 }
#endif
  /* Under "forbid" the tick is skipped because of what runs, which is compared. */
  :: d_step { st[i] == ready && cursor < LAST && !paused && busy && fire[cursor] == 0 -> 
       fire[cursor] = SKIP; results[cursor]++; cursor++ }
  /* etcd handles it. */
  :: d_step { wire[i] -> claim(i, tick[i], rev[i], i + 1, ok); won[i] = ok; answered[i] = 1; wire[i] = 0; ok = 0 }
  :: d_step { wire[i] && !good -> wire[i] = 0 }                                                  /* lost on the way */
  /* The answer does not come; the request may still be under way. */
  :: d_step { st[i] == claiming && (!good || (!wire[i] && !answered[i])) -> st[i] = reading; answered[i] = 0; won[i] = 0 }
  :: d_step { st[i] == reading ->
       if
#ifdef M_NONCE
       :: fire[tick[i]] != 0 && fire[tick[i]] != SKIP -> st[i] = claiming; won[i] = 1; answered[i] = 1; wire[i] = 0
       :: !(fire[tick[i]] != 0 && fire[tick[i]] != SKIP) ->
#else
       :: fire[tick[i]] == i + 1 -> st[i] = claiming; won[i] = 1; answered[i] = 1; wire[i] = 0
       :: fire[tick[i]] != i + 1 ->
#endif
          if :: wire[i] && !late[i] -> late[i] = tick[i] + 1; lateRev[i] = rev[i] :: else fi;
          forget(i)
       fi }
  /* What was given up lands: with a nonce that nobody waits for. */
  :: d_step { late[i] -> claim(i, late[i] - 1, lateRev[i], NOBODY, ok); late[i] = 0; lateRev[i] = 0; ok = 0 }
  :: d_step { late[i] && !good -> late[i] = 0; lateRev[i] = 0 }

  :: d_step { st[i] == claiming && answered[i] && !won[i] -> forget(i) }
  /* C1: started on the session that claimed it, which stands. */
  :: d_step { st[i] == claiming && answered[i] && won[i] -> t = tick[i];
       if
       :: session[i] && !offline[i] && age[i] < TERM && SEES(t) ->
          child[t] = 1; left[t] = age[i]; owner[t] = i + 1; started[t]++;
          assert(started[t] <= 1);                                                                /* no doubled tick */
          assert(child[0] + child[1] <= 1)                                                        /* "forbid" */
       :: else -> if :: open[t] -> finish(t) :: else fi                                           /* closed: not started */
       fi;
       forget(i); t = 0 }
#ifndef M_UNCONFIRMED
  /* It landed when nobody waited for it any more. */
  :: d_step { up(i) && open[0] == i + 1 && owner[0] == 0 && !mine(i, 0) -> finish(0) }
  :: d_step { up(i) && open[1] == i + 1 && owner[1] == 0 && !mine(i, 1) -> finish(1) }
#endif

  /* The registration: proven, lost, and made again. Its markers go with it. */
  :: d_step { up(i) && session[i] && age[i] && age[i] < TERM -> age[i] = 0;
       for (t : 0 .. TICKS-1) {
         if :: owner[t] == i + 1 && !former[t] && left[t] < TERM && SEES(t) -> left[t] = 0 :: else fi
       } t = 0 }
  :: d_step { session[i] && ((!good && losses < LOSSES) || (up(i) && age[i] >= TERM)) -> if :: !good -> losses++ :: else fi;
       session[i] = 0; age[i] = 0; offline[i] = (up(i) && st[i] != ready);
       for (t : 0 .. TICKS-1) {
#ifndef M_CLAIMLEASE
         if :: open[t] == i + 1 || owner[t] == i + 1 -> marker[t] = 0 :: else fi;
#endif
         if :: owner[t] == i + 1 -> former[t] = 1 :: else fi
       } t = 0 }
  :: d_step { up(i) && !session[i] && (good || losses < LOSSES) -> session[i] = 1; age[i] = 0 }

  /* A child ends, by itself or by its guard; its end is written. */
  :: d_step { child[0] && owner[0] == i + 1 -> child[0] = 0 }
  :: d_step { child[1] && owner[1] == i + 1 -> child[1] = 0 }
  :: d_step { owner[0] == i + 1 && !child[0] && up(i) -> finishOwn(0) }
  :: d_step { owner[1] == i + 1 && !child[1] && up(i) -> finishOwn(1) }
#ifdef M_TWOTXN
  :: d_step { up(i) && unsaid[0] == i + 1 -> unsaid[0] = 0; results[0]++ }
  :: d_step { up(i) && unsaid[1] == i + 1 -> unsaid[1] = 0; results[1]++ }
#endif
  /* The daemon is killed: its guard ends what runs, and writes it. Or the host dies, and nobody does. */
  :: d_step { !good && up(i) && kills < KILLS -> kills++;
       if :: wire[i] && !late[i] -> late[i] = tick[i] + 1; lateRev[i] = rev[i] :: else fi;
       forget(i); st[i] = down; 
       for (t : 0 .. TICKS-1) {
         if :: fire[t] == i + 1 -> fire[t] = NOBODY :: else fi;
         if :: owner[t] == i + 1 -> owner[t] = NOBODY :: else fi
#ifdef M_TWOTXN
         ; if :: unsaid[t] == i + 1 -> unsaid[t] = 0 :: else fi
#endif
       } t = 0 }
  :: d_step { st[i] == down && !good -> st[i] = ready;                                           /* started again, registered again */
       session[i] = 0; age[i] = 0;
       for (t : 0 .. TICKS-1) {
         if :: open[t] == i + 1 -> open[t] = NOBODY; if :: owner[t] == 0 -> former[t] = 0 :: else fi :: else fi
       } t = 0 }
  /* A peer settles what has no marker. */
  :: d_step { up(i) && open[0] && !marker[0] && owner[0] != i + 1 && !mine(i, 0) && SETTLED(0) -> finish(0) }
  :: d_step { up(i) && open[1] && !marker[1] && owner[1] != i + 1 && !mine(i, 1) && SETTLED(1) -> finish(1) }
  od
}

/* The guard of a daemon that was killed. */
proctype Guard(byte t) {
end:
  do
  :: d_step { owner[t] == NOBODY && child[t] -> child[t] = 0 }
  :: d_step { owner[t] == NOBODY && !child[t] -> finishOwn(t) }
  :: d_step { owner[t] == NOBODY && !good -> child[t] = 0; owner[t] = 0; former[t] = 0; left[t] = 0 }   /* with its host */
  /* A marker goes: deleted, or with the lease of a daemon that is no more. */
  :: d_step { marker[t] && !good && losses < LOSSES -> losses++; marker[t] = 0 }
#ifndef M_CLAIMLEASE
  :: d_step { marker[t] && good && (open[t] == NOBODY || (open[t] && open[t] <= NODES && !up(open[t] - 1))) -> marker[t] = 0 }
#endif
  od
}

proctype Operator() {
  byte n;
end:
  do
  :: d_step { !paused && n < PAUSES && !good -> paused = 1; pauseRev++; n++ }
  :: d_step { paused && !acked -> acked = 1 }
  :: d_step { paused -> paused = 0; acked = 0; pauseRev++ }
  od
}

#define due(t) (child[t] && left[t] >= KILL + M)
#define CALM (2 * TTL + 4)
proctype Clock() {
  byte i;
end:
  do
  :: atomic { (!good && !due(0) && !due(1)) || (good && calm < CALM && timeout) -> d_step {
       for (i : 0 .. NODES-1) { if :: up(i) && session[i] && age[i] < TERM -> age[i]++ :: else fi }
       for (i : 0 .. TICKS-1) {
         if :: child[i] && left[i] < KILL + M -> left[i]++ :: else fi;
         if :: open[i] && !marker[i] && gone[i] < TTL -> gone[i]++ :: else fi
       }
       i = 0;
       if :: good -> calm++;
             if :: calm == CALM && (up(0) || up(NODES-1)) ->
                   for (i : 0 .. TICKS-1) {
                     assert(child[i] == 0 && open[i] == 0 && marker[i] == 0);
                     assert(paused || (fire[i] && results[i] == 1))
                   } i = 0
                :: else
             fi
          :: else
       fi } }
  od
}

#ifdef LIVE
active proctype Good() { good = 1 }
#endif
init {
  byte i;
  atomic {
    for (i : 0 .. NODES-1) { session[i] = 1; run Node(i) }
    for (i : 0 .. TICKS-1) { run Guard(i) }
    i = 0; run Operator(); run Clock()
  }
}
