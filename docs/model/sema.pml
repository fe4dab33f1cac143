/* sema.pml: the candidates, slots and open records of a semaphore (seat.go, slot.go, ward.go, release.go).
 *
 * Modelled: N contenders for SLOTS slots; a candidate's key and a slot's key on one lease, a record for each slot. Each Txn
 * is one step, which may be late. Either key goes at any time, or both; whoever leaves does so with a word or without. DOUBT: a
 * request that takes a slot gets no answer and lands later, while another slot is gone for. CROSS: contender 0 says --max 1,
 * the others --max 2. TRY: the last contender tries: it looks, and enters only where there is room.
 *
 * Not modelled: what a lost answer does besides (hold.pml), who is woken by what (a waiter looks at any time), answers about
 * leases (settle.pml), --spread, which slot is chosen, --ignore-other-max.
 *
 * Time: as in settle.pml. TERM is KILL: a child may live until KILL + M < TTL.
 *
 * Properties: no two children share a slot, no more than MOST are at work, a candidate has one slot, a slot is taken by whom
 * fewer than max are older than, a try does not queue. LIVE: after CALM ticks in which nothing goes wrong nobody waits.
 *
 * Mutations, M_...: in searches.txt, by the numbers of the rules in seat.go.
 *
 * Exhausted (Spin 6.5.2):
 * sema 2.9 M states, sema-max 0.18 M, sema-try 3.0 M, sema-live 5.8 M (0.8 GB, 2 minutes on a busy machine), sema-live-max 0.36
 * M.
 * Not exhausted: late requests of three contenders (sema-doubt).
 */
#ifndef N
#define N 3
#endif
#define TTL   4
#define TERM  2
#define KILL  2
#define M     1                        /* KILL + M < TTL */

#ifdef CROSS                           /* contender 0 says --max 1 and has slot 0, the others --max 2 and have 1 and 2 */
#define SLOTS     3
#define max(i)    (i == 0 -> 1 : 2)
#define mine(i, s) ((i == 0) == (s == 0))
#else
#define SLOTS     2
#define max(i)    SLOTS
#define mine(i, s) 1
#endif
#define MOST      2                    /* nobody may see more at work */

/* States of a seat (seat.go). */
#define idle      0
#define queued    1                    /* and entitled, when fewer than max are older */
#define held      2
#define running   3
#define done      4
#define NOSLOT    9

byte st[N], age[N], slot[N], lost[N];  /* lost: 1 known, 2 by its clock, or its child is gone */
byte place[N];                         /* of the candidate's key, by create revision; 0: none */
bit  child[N], seated[N];              /* seated: the own key was put again (M2) */
byte owner[SLOTS], rec[SLOTS], gone[SLOTS];
byte late[N];                          /* a request without an answer that takes this slot; + 1 */
#ifdef TRY
byte came, saw, room;                  /* M6: contender N-1 tries: keys so far, when it looked, whether it saw room */
bit  looked;
#endif
bit  good;
byte calm;

#define standing(i) (st[i] >= queued && st[i] <= running)
#define owns(i)   (slot[i] != NOSLOT && owner[slot[i]] == i + 1)
#define alive(i)  (!lost[i] && age[i] < TERM)
#ifdef M_M3                            /* the candidate's key alone is looked at */
#define keys(i)   (place[i] != 0)
#else
#define keys(i)   (place[i] != 0 && (st[i] == queued || owns(i)))
#endif
#ifdef M_M1                            /* a slot is taken whatever the rank */
#define entitled(i) (place[i] != 0)
#else
#define entitled(i) (place[i] != 0 && rank[i] < max(i))
#endif
byte rank[N];                          /* how many are older, among those of the own max */

#ifdef M_SETTLENOW
#define settled(s) 1
#else
#define settled(s) (rec[s] == 0 || gone[s] >= TTL)
#endif
#define free(s) (owner[s] == 0)
#ifdef M_M2
#define once(i) 1
#else
#define once(i) (!seated[i])
#endif
/* M5: nothing of another max is there: no candidate, no slot's key, no record. */
#if !defined(CROSS) || defined(M_M5)
#define noCandidates(i) 1
#else
#define noCandidates(i) (i == 0 -> (place[1] == 0 && place[2] == 0) : place[0] == 0)
#endif
#if !defined(CROSS) || defined(M_M5) || defined(M_M5RECORDS)
#define noRecords(i) 1
#else
#define noRecords(i) (i == 0 -> (owner[1] == 0 && owner[2] == 0 && rec[1] == 0 && rec[2] == 0) : (owner[0] == 0 && rec[0] == 0))
#endif
#define alone(i) (noCandidates(i) && noRecords(i))

inline enter(i) {                      /* create revisions rise */
  for (z : 0 .. N-1) { if :: place[z] && mine(i, 0) == mine(z, 0) -> n++ :: else fi }
  z = 0; rank[i] = n; place[i] = n + 1; n = 0; st[i] = queued; age[i] = 0; slot[i] = NOSLOT; seated[i] = 0;
#ifdef TRY
  came++
#endif
}
inline unplace(i) {                    /* the candidate's key goes */
  for (z : 0 .. N-1) {
    if :: z != i && place[z] && mine(i, 0) == mine(z, 0) && rank[z] > rank[i] -> rank[z]--; place[z] = rank[z] + 1 :: else fi
  }
  z = 0; place[i] = 0; rank[i] = 0
}
#ifdef M_M7                            /* settling counts while the slot's key stands */
inline unslot(s) { owner[s] = 0 }
#else
inline unslot(s) { if :: rec[s] && rec[s] == owner[s] -> gone[s] = 0 :: else fi; owner[s] = 0 }
#endif
inline take(i, s) { assert(rank[i] < max(i)); owner[s] = i + 1; rec[s] = i + 1; gone[s] = 0; seated[i] = 1 }

inline ends(i) { st[i] = done; age[i] = 0; lost[i] = 0; slot[i] = NOSLOT; seated[i] = 0 }
#define may(i, s) (mine(i, s) && place[i] && entitled(i) && once(i) && free(s) && settled(s) && alone(i))
#if SLOTS > 2
#define ANY(i) (may(i, 0) || may(i, 1) || may(i, 2))
#else
#define ANY(i) (may(i, 0) || may(i, 1))
#endif
#define bound(i, s) (mine(i, s) && place[i] && once(i) && free(s) && settled(s) && alone(i))   /* what a late request compares */

proctype Seat(byte i) {
  byte z, n;
end:
  do
#ifdef TRY
  :: d_step { i == N-1 && st[i] == idle && !looked && !good -> n = 0;
       for (z : 0 .. N-1) { if :: place[z] -> n++ :: else fi } z = 0;
       room = (n < max(i)); saw = came; looked = 1; n = 0 }
  :: d_step { i == N-1 && st[i] == idle && looked -> looked = 0;
       if
#ifdef M_M6
       :: room -> enter(i); assert(rank[i] < max(i))
       :: !room -> st[i] = done
#else
       :: room && came == saw -> enter(i); assert(rank[i] < max(i))      /* a try never queues */
       :: room && came != saw -> skip                                    /* and looks again */
       :: !room -> st[i] = done
#endif
       fi; room = 0; saw = 0 }
  :: d_step { i != N-1 && st[i] == idle && !good && alone(i) -> enter(i) }
#else
  :: d_step { st[i] == idle && !good && alone(i) -> enter(i) }
#endif
  /* The one Txn that takes a slot (M2): key, record, and the own key again. */
  :: atomic { st[i] == queued && alive(i) && ANY(i) ->
       if
       :: may(i, 0) -> d_step { take(i, 0); slot[i] = 0; st[i] = held }
       :: may(i, 1) -> d_step { take(i, 1); slot[i] = 1; st[i] = held }
#if SLOTS > 2
       :: may(i, 2) -> d_step { take(i, 2); slot[i] = 2; st[i] = held }
#endif
       fi }
  /* It got no answer: the request may land later, and another slot is gone for. */
#ifdef DOUBT
  :: d_step { st[i] == queued && !late[i] && !good && alive(i) && may(i, 0) -> late[i] = 1 }
  :: d_step { st[i] == queued && !late[i] && !good && alive(i) && may(i, 1) -> late[i] = 2 }
  :: d_step { late[i] ->
       if
       :: bound(i, late[i] - 1) -> assert(!(st[i] >= held && owns(i) && late[i] - 1 != slot[i]));     /* one candidate, one slot */
          z = late[i] - 1; take(i, z); if :: st[i] == queued -> slot[i] = z; st[i] = held :: else fi; z = 0
       :: else
       fi; late[i] = 0 }
  :: d_step { late[i] && !good -> late[i] = 0 }
#endif
  :: d_step { st[i] == queued && (!good || !alive(i) || !place[i]) -> if :: place[i] -> unplace(i) :: else fi; ends(i) }
  :: d_step { st[i] == held && alive(i) -> st[i] = running; child[i] = 1;
       for (z : 0 .. N-1) {
         if :: child[z] -> n++;
#ifndef COUNT
            assert(z == i || slot[z] != slot[i])                         /* no two share a slot */
#endif
            :: else
         fi }
       z = 0; assert(n <= MOST); n = 0 }
  :: d_step { standing(i) && keys(i) && alive(i) && (st[i] != running || child[i]) && age[i] -> age[i] = 0 }
  :: d_step { (st[i] == held || (st[i] == running && child[i])) && !keys(i) && !lost[i] -> lost[i] = 1 }
  :: d_step { child[i] -> child[i] = 0; age[i] = 0; lost[i] = 2 }
  /* Release (M4): the keys and the record, each under its own guard. */
  :: d_step { ((st[i] == running && !child[i]) || (st[i] == held && (!good || !alive(i) || !keys(i)))) ->
#ifdef M_M4
       z = slot[i]; unslot(z); rec[z] = 0; gone[z] = 0; z = 0;
#else
       if :: owns(i) -> z = slot[i]; unslot(z); z = 0 :: else fi;
       if :: rec[slot[i]] == i + 1 -> rec[slot[i]] = 0; gone[slot[i]] = 0 :: else fi;
#endif
       if :: place[i] -> unplace(i) :: else fi;
       ends(i) }
  /* Its host dies. */
  :: d_step { !good && (st[i] == queued || st[i] == held || (st[i] == running && !child[i])) -> ends(i) }

  /* etcd: either key, or both with their lease, go at any time. */
  :: d_step { place[i] && (!good || st[i] == done) -> unplace(i) }
  :: d_step { !good && owns(i) -> z = slot[i]; unslot(z); z = 0 }
  od
}
/* Keys of those who left without a word. */
proctype Expiry(byte s) {
end:
  do
  :: d_step { owner[s] && st[owner[s]-1] == done -> unslot(s) }
  od
}

#define due(i) (child[i] && age[i] >= KILL + M)
#if N == 3
#define DUE (due(0) || due(1) || due(2))
#else
#define DUE (due(0) || due(1) || due(2) || due(3))
#endif
#ifdef M_M7
#define counting(s) (rec[s] != 0)
#else
#define counting(s) (rec[s] && rec[s] != owner[s])
#endif
#define CALM (2 * TTL + 4)

proctype Clock() {
  byte i;
end:
  do
  :: atomic { (!good && !DUE) || (good && calm < CALM && timeout) -> d_step {
       for (i : 0 .. N-1) {
         if
         :: standing(i) && (st[i] != running || child[i]) ->
            if :: age[i] < KILL + M -> age[i]++ :: else fi;
            if :: lost[i] == 0 && age[i] >= TERM && st[i] >= held -> lost[i] = 2 :: else fi
         :: else
         fi
       }
       for (i : 0 .. SLOTS-1) { if :: counting(i) && gone[i] < TTL -> gone[i]++ :: else fi }
       i = 0;
       if :: good -> calm++;
             if :: calm == CALM -> for (i : 0 .. N-1) { assert(!standing(i)) } i = 0 :: else fi
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
    for (i : 0 .. N-1) { slot[i] = NOSLOT; run Seat(i) }
    for (i : 0 .. SLOTS-1) { run Expiry(i) }
    i = 0; run Clock()
  }
}
