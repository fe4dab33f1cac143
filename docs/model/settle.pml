/* settle.pml: the open record of a hold, settling, and how a hold is handed over.
 *
 * Modelled: N contenders, each wrapper, guard and child in one (candidate.go, settle.go, term.go, release.go). Each Txn is
 * one step, which may be late; what it compares, it compares in that step. Any key goes at any time, without budget: an
 * operator deletes it, a leader that was paused revokes its lease. The holder is told of that at once, late, or never (it is
 * cut off). Whoever leaves does so with a word, by itself or by its guard, or without one: its host dies. R5: the first in the
 * queue asks at any time how long the lease of the oldest will last, and is told the truth. PLAIN: sessions that, while nothing
 * is held on them, are lost at KILL and not at TERM (SessionOptions.Refresh). HANDOVER: a proposal, not in the code: the
 * release of a hold names the successor. It replaces the record by one about the successor's hold, with the successor's TTL, if
 * the successor's key still has the create revision that was read from the queue beforehand; who is named starts after a read
 * that shows its key the oldest and the record its own.
 *
 * Not modelled: answers that are lost or late (hold.pml), renewals that take time (hold.pml), answers of a deposed leader
 * about a lease.
 *
 * Time: ages and countdowns, as in hold.pml. A child is dead M ticks after KILL since the last renewal, and AFTER + M after
 * it was told of the loss of its key; KILL + M < TTL. Settling is counted from the moment at which the key went, the earliest
 * at which anybody can have seen it gone: a real settler waits no shorter.
 *
 * Properties: no two children at once. No phantom leader: no child lives a TTL after its key went. LIVE: after CALM ticks in
 * which nothing goes wrong nobody waits; and where all who left did so with a word, no record is left.
 *
 * Mutations, M_...: in searches.txt. M_HAND... are those of the proposal: M_HANDGONE and M_HANDLEAVE break no safety, but
 * leave a record that the next one has to settle.
 *
 * Exhausted (Spin 6.5.2):
 * settle-two 0.68 M states, settle 1.9 M, settle-ttls 2.1 M, settle-kill-after 2.3 M, settle-plain 1.6 M, settle-live-two 26 k,
 * settle-live 3.9 M (0.6 GB); handover 3.1 M, handover-ttls 3.3 M, handover-two 0.90 M, handover-plain 2.6 M, handover-live-two
 * 38 k, handover-live 6.5 M. Each in less than a minute.
 * Four contenders are too many: not exhausted.
 */
#ifndef N
#define N 3
#endif
#ifndef LIVES
#define LIVES 1                        /* attempts of each contender */
#endif

/* The times of contender i. expiry: not before TTL(i) after the last renewal that etcd processed. */
#ifdef TDIFF                           /* contender 0 has the longer lease */
#define TTL(i)   (i == 0 -> 8 : 5)
#define KILL(i)  (i == 0 -> 6 : 3)
#define GRACE(i) 2
#define TMAX     8
#else
#define TTL(i)   5
#define KILL(i)  3
#define GRACE(i) 1
#define TMAX     5
#endif
#define TERM(i)  (KILL(i) - GRACE(i))
#ifndef AFTER
#define AFTER    1                     /* kill-after, on a known loss */
#endif
#define M        1                     /* to schedule, kill and reap */

/* States of a contender (candidate.go, supervise/machine.go). */
#define idle      0
#define queued    1
#define settling  2
#define held      3                    /* its record is open: it may start */
#define running   4                    /* until its release */
#define done      5

#define NOBODY    (N + 1)              /* an earlier attempt's */
#define NONE      15                   /* no answer */

byte st[N], place[N], lease[N], age[N], kill[N], life[N];
byte lost[N];                          /* 0 not, 1 known, 2 by its clock, or its child is gone */
bit  child[N];
byte answer[N], about[N];              /* R5: what etcd said is left, and of whose lease */
byte rec, ttl;                         /* the record: 0 none, i+1 about i's attempt, NOBODY; and the TTL in it */
byte gone;                             /* ticks since the key of the recorded hold went: the most that anybody can have seen */
#ifdef M_LATEST
byte since[N];
#endif
#ifdef M_OVERWRITE
byte need[N];
#endif
#ifdef HANDOVER
byte next[N], nextLife[N];             /* read from the queue beforehand: whom to hand over to */
#endif
bit  good, silent;                     /* LIVE: from here on nothing goes wrong any more; somebody ended without a word */
byte calm;

#ifdef LIVE
#define SILENT silent = 1;
#else
#define SILENT
#endif
#define standing(i) (st[i] >= queued && st[i] <= running)
#define alive(i)    (!lost[i] && age[i] < TERM(i))
#ifdef PLAIN                           /* a plain session is lost at the deadline only, while nothing is held on it */
#define renewable(i) (!lost[i] && age[i] < (st[i] == running -> TERM(i) : KILL(i)))
#else
#define renewable(i) alive(i)
#endif

#ifdef M_NOKEY                         /* a renewal counts though the own key was not there */
#define keyed(i) 1
#else
#define keyed(i) (place[i] != 0)
#endif

inline unplace(i, z) {                 /* the key of i goes */
  for (z : 0 .. N-1) {
    if
    :: place[z] > place[i] ->
       if
       :: place[z] == place[i] + 1 && place[i] == 1 && answer[z] != NONE -> about[z] = i + 1
       :: place[z] == place[i] + 1 && !(place[i] == 1 && answer[z] != NONE) -> about[z] = 0; answer[z] = NONE
       :: else
       fi;
       place[z]--
    :: else
    fi
  }
  z = 0; place[i] = 0; lease[i] = 0;
  if :: rec == i + 1 -> gone = 0 :: else fi
}

inline opens(i)  { rec = i + 1; ttl = TTL(i); gone = 0 }
inline closes(i) { if :: rec == i + 1 -> rec = 0; ttl = 0; gone = 0 :: else fi }

inline ends(i) {
  st[i] = done; age[i] = 0; kill[i] = 0; answer[i] = NONE; about[i] = 0; lost[i] = 0;
#ifdef M_OVERWRITE
  need[i] = 0;
#endif
#ifdef HANDOVER
  next[i] = 0; nextLife[i] = 0;
#endif
#ifdef M_LATEST
  since[i] = 0;
#endif
}

/* The deciding Txn of the oldest (R1). */
#if defined(M_HANDANY)
#define ours(i) (rec != 0)             /* any record is taken for the own one */
#elif defined(M_HANDLEASE)             /* 0 and 1 are two attempts on one lease, and only the lease is compared */
#define ours(i) (rec == i + 1 || (i < 2 && (rec == 1 || rec == 2)))
#else
#define ours(i) (rec == i + 1)
#endif
inline decide(i) {
  if
  :: rec == 0 -> opens(i); st[i] = held
#ifdef HANDOVER
  :: rec != 0 && ours(i) -> st[i] = held     /* read only: somebody opened it for us */
  :: rec != 0 && !ours(i) -> st[i] = settling
#else
  :: rec != 0 -> st[i] = settling;
#ifdef M_OVERWRITE
     need[i] = ttl; opens(i)
#endif
#endif
  fi
}

/* How long is waited (R2), and from when. */
#if defined(M_OWNTTL)
#define needed(i) TTL(i)
#elif defined(M_NOSETTLE)
#define needed(i) 0
#elif defined(M_SHORT)
#define needed(i) (ttl - 1)
#elif defined(M_OVERWRITE)
#define needed(i) need[i]
#else
#define needed(i) ttl
#endif
#ifdef M_LATEST
#define waited(i) since[i]
#else
#define waited(i) gone
#endif
/* R5: an answer that counted has run out. */
#ifdef M_ANSWEROTHER
#define ranOut(i) (about[i] && answer[i] == 0)
#else
#define ranOut(i) (about[i] && about[i] == rec && answer[i] == 0)
#endif
#if defined(M_ANSWERANY)
#define counts(z) 1
#elif defined(PLAIN) && !defined(M_PLAINTERM)
#define counts(z) (lease[z] <= TTL(z) - KILL(z))
#else
#define counts(z) (lease[z] <= TTL(z) - TERM(z))
#endif

proctype Contender(byte i) {
  byte z, n;
end:
  do
  :: d_step { st[i] == idle && !good -> n = 0;
       for (z : 0 .. N-1) { if :: place[z] > n -> n = place[z] :: else fi } z = 0;
       place[i] = n + 1; lease[i] = TTL(i); age[i] = 0;
       if :: n == 0 -> decide(i) :: else -> st[i] = queued fi; n = 0 }
  :: d_step { st[i] == queued && place[i] == 1 && alive(i) -> decide(i) }

  /* It leaves the queue: gives up, lost, or killed and its guard tidies up. Or its host dies, and nobody does. */
  :: d_step { st[i] == queued && (!good || !alive(i) || !place[i]) -> if :: place[i] -> unplace(i, z) :: else fi;
#ifndef M_HANDLEAVE
       closes(i);
#endif
       ends(i) }
  :: d_step { st[i] == queued && !good -> SILENT ends(i) }

  /* R5: the first in the queue asks how long the lease of the oldest will last. */
  :: d_step { st[i] == queued && place[i] == 2 && !good -> for (z : 0 .. N-1) { if :: place[z] == 1 -> break :: else fi }
       if :: counts(z) -> answer[i] = lease[z] :: else -> answer[i] = NONE fi; z = 0 }

  /* Settled: the record changes hands, in a Txn guarded by the own key and the record. */
  :: d_step { st[i] == settling && alive(i) && place[i] == 1 && (rec == 0 || waited(i) >= needed(i) || ranOut(i)) -> opens(i); st[i] = held }
#ifdef M_LATEST                        /* each look begins to count anew */
  :: d_step { st[i] == settling && since[i] > 0 -> since[i] = 0 }
#endif

  /* The child starts. */
  :: d_step { st[i] == held && alive(i) -> st[i] = running; child[i] = 1; about[i] = 0; answer[i] = NONE;
       for (z : 0 .. N-1) { assert(z == i || !child[z]) } z = 0 }

  :: d_step { standing(i) && keyed(i) && renewable(i) && (st[i] != running || child[i]) && age[i] -> age[i] = 0; lease[i] = TTL(i) }
  :: d_step { standing(i) && !place[i] && !lost[i] && (st[i] != running || child[i]) -> lost[i] = 1; kill[i] = 0 }
  :: d_step { child[i] -> child[i] = 0; age[i] = 0; kill[i] = 0; lost[i] = 2 }

#ifdef HANDOVER
  /* The queue is read at any time beforehand. */
  :: d_step { st[i] == running && place[i] == 1 && !good -> n = 0;
       for (z : 0 .. N-1) { if :: place[z] == 2 && st[z] == queued -> next[i] = z + 1; nextLife[i] = life[z] :: else fi } z = 0 }
#endif
  /* Nothing is left: release, and close the record (R4), the key there or not. Or its host dies. */
  :: d_step { st[i] == running &&
#if !defined(M_EARLY) && !defined(M_HANDEARLY)
              !child[i] &&
#endif
#ifdef M_HANDEARLY
              (!child[i] || (next[i] && place[i] == 1)) &&
#endif
              1 ->
       if
#ifdef HANDOVER
       :: place[i] && rec == i + 1 && next[i] -> z = next[i] - 1;
          if
#ifdef M_HANDGONE
          :: 1 ->
#else
          :: place[z] == 2 && life[z] == nextLife[i] ->
#endif
#ifdef M_HANDTTL
             ttl = TTL(i);
#else
             ttl = TTL(z);
#endif
             rec = (life[z] == nextLife[i] -> z + 1 : NOBODY); gone = 0
#ifndef M_HANDGONE
          :: else -> closes(i)
#endif
          fi; z = 0;
          unplace(i, z)
       :: place[i] && !(rec == i + 1 && next[i]) -> closes(i); unplace(i, z)
#else
       :: place[i] -> closes(i); unplace(i, z)
#endif
#ifdef M_CLOSEOTHER
       :: !place[i] -> rec = 0; ttl = 0; gone = 0
#else
       :: !place[i] -> closes(i)
#endif
       fi;
#if defined(M_EARLY)
       if :: !child[i] -> ends(i) :: else fi
#elif defined(M_HANDEARLY)
       if :: !child[i] -> ends(i) :: else -> next[i] = 0 fi
#else
       ends(i)
#endif
       }
  :: d_step { st[i] == running && !child[i] && !good -> SILENT ends(i) }
  /* It leaves before its child has started. */
  :: d_step { (st[i] == settling || st[i] == held) && (!good || !alive(i) || !place[i]) ->
       if :: place[i] -> unplace(i, z) :: else fi;
       closes(i); ends(i) }
  :: d_step { (st[i] == settling || st[i] == held) && !good -> SILENT ends(i) }

  /* etcd: a key goes at any time. Nobody renews the key of one who has left without a word. */
  :: d_step { place[i] && (!good || (st[i] == done && lease[i] == 0)) -> unplace(i, z) }
  /* Another attempt, with a lease of its own. */
  :: d_step { st[i] == done && !place[i] && !good && life[i] < LIVES - 1 -> life[i]++; st[i] = idle;
       if :: rec == i + 1 -> rec = NOBODY :: else fi }
  od
}

/* Time does not pass where something alive has to be dead. R3: also after a known loss not later than by the deadline. */
#ifdef M_NOCLIP
#define due(i) (child[i] && (lost[i] == 1 -> kill[i] >= AFTER + M : age[i] >= KILL(i) + M))
#else
#define due(i) (child[i] && (age[i] >= KILL(i) + M || (lost[i] == 1 && kill[i] >= AFTER + M)))
#endif
#if N == 2
#define DUE (due(0) || due(1))
#elif N == 3
#define DUE (due(0) || due(1) || due(2))
#else
#define DUE (due(0) || due(1) || due(2) || due(3))
#endif
#define CALM (2 * TMAX + 2)

proctype Clock() {
  byte i;
end:
  do
  :: atomic { (!good && !DUE) || (good && calm < CALM && timeout) -> d_step {
       for (i : 0 .. N-1) {
         if
         :: standing(i) && (st[i] != running || child[i]) ->
            if :: age[i] < KILL(i) + M -> age[i]++ :: else fi;
            if :: lost[i] == 0 && !renewable(i) && st[i] >= settling -> lost[i] = 2 :: else fi;
            if :: lost[i] == 1 && kill[i] < AFTER + M -> kill[i]++ :: else fi
         :: else
         fi;
#ifdef M_LATEST
         if :: st[i] == settling && since[i] < TMAX -> since[i]++ :: else fi;
#endif
         if :: answer[i] != NONE && answer[i] > 0 -> answer[i]-- :: else fi;
         if :: lease[i] > 0 -> lease[i]-- :: else fi
       }
       i = 0;
       if :: rec != 0 && gone < TMAX && (rec == NOBODY || place[rec-1] == 0) -> gone++ :: else fi;
       if :: rec != 0 && rec != NOBODY -> assert(!child[rec-1] || place[rec-1] || gone < ttl) :: else fi;   /* no phantom leader */
       if :: good -> calm++;
             if :: calm == CALM -> for (i : 0 .. N-1) { assert(!standing(i)) } i = 0; assert(silent || rec == 0) :: else fi
          :: else
       fi } }
  od
}

#ifdef LIVE
active proctype Good() { good = 1 }
#endif
init {
  byte i;
  atomic { for (i : 0 .. N-1) { answer[i] = NONE; run Contender(i) } i = 0; run Clock() }
}
