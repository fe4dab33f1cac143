/* hold.pml: one hold of an office: session, verified renewal, queue, guard, release.
 *
 * Modelled: N contenders, each a Wrapper (the candidate and its way out: candidate.go, wait.go, release.go, and the machine
 * of internal/hold/supervise), its Renewals (keepalive.go), a Guard (internal/hold/guard), a Child with, under ESCAPES, a
 * descendant that the parent-death signal does not reach, and what Etcd does for it. Each request has three steps, sent,
 * handled and answered, any of which may be late or not come; one that was given up may be handled later. The renewal and the
 * read that proves it are one step. Faults, by budget: wrapper or guard killed or stopped (never both of one contender),
 * answers lost, a renewal that a deposed leader acknowledges without effect.
 *
 * Not modelled: keys that go before their time, the open record and settling (settle.pml), slots (sema.pml), eviction
 * (evict.pml), hooks.
 *
 * Time: a tick is a fifth or so of a TTL. All clocks are ages and countdowns, so a run has no end and the states are finite.
 * Etcd lets a lease go at any time from TTL ticks after the last renewal that it handled. KILL, GRACE: after KILL ticks since
 * that renewal was *sent* the guard kills, from KILL - GRACE on the hold is lost. SLACK is what a guard may be late; the
 * clocks' rates differ by what is left to TTL. Any step may take any time, but for those that HOLDT names: what the guarantee
 * calls prompt.
 *
 * Properties: a key does not go while anything of its tree is alive, so no two children overlap; who starts has the oldest
 * key, and it is there (no phantom leader). LIVE: from any state on, once nothing goes wrong any more (good) and time passes
 * only when nobody can act, after CALM ticks nobody waits, and no key is left of who has ended: no lost wake-up, nobody waits
 * for ever, no orphaned key.
 *
 * Mutations, M_...: in searches.txt, with what each breaks. REN0 (contender 0 alone renews) and NOREN make a search smaller.
 *
 * Exhausted (Spin 6.5.2):
 * hold 95 k states, hold-answers 0.85 M, hold-killed 0.54 M, hold-stopped 0.37 M, hold-guard-killed 0.47 M, hold-guard-stopped
 * 0.78 M, hold-twice 3.9 M (0.8 GB), hold-renewals 0.38 M, hold-renewals-long 0.81 M, hold-stale 0.89 M, hold-live 2.6 M.
 * hold-live-give-up 32 M (5.5 GB). A wrapper kills a guard that is stopped, or has nothing left; that a wrapper takes
 * an honest guard for frozen, kills it and is killed at once itself, is two faults of one contender, and overlaps.
 * Not exhausted: faults together with renewals by both (hold-all).
 */
#ifndef N
#define N 2
#endif
#ifndef TTL
#define TTL 6
#endif
#ifndef KILL
#define KILL 4
#endif
#ifndef GRACE
#define GRACE 2
#endif
#ifndef SLACK
#define SLACK 1           /* guard acts (schedule + reap) at most SLACK ticks after KILL ; KILL+SLACK < TTL */
#endif
#ifndef MAXH
#define MAXH 1         /* holds per session (2 = resign and campaign again on the same lease) */
#endif
#ifndef WKILL
#define WKILL 0
#endif
#ifndef WSTOP
#define WSTOP 0        /* explicit SIGSTOP; needed for liveness and exclusion only: any step may be late anyway */
#endif
#ifndef GKILL
#define GKILL 0
#endif
#ifndef GSTOP
#define GSTOP 0
#endif
#ifndef STALE
#define STALE 0        /* renewals acknowledged by a deposed leader (old raft term), without effect */
#endif
#ifndef GIVEUP
#define GIVEUP 0
#endif
#ifndef LOSSES
#define LOSSES 1       /* time-outs of main requests (request lost / reply lost / still under way) */
#endif
#define OVER (KILL+SLACK)
mtype = { NONE, PUT, READ, DEL, REVOKE };
/* ---- etcd ---- */
bit  lease[N];  byte left[N];          /* lease alive; ticks before it may expire */
byte key[N], revisions;                   /* create revision of i's key (0 = none; key name = lease id); counter */
byte watch[N]; bit wake[N];          /* i watches the key with this revision (and its own); event pending */
/* ---- main request slot + one ghost (client gave up, etcd may still process it) ---- */
mtype asked[N]; bit answered[N]; byte answer[N], about[N];
mtype late[N]; byte lateAbout[N];
/* ---- wrapper ---- */
#define idle        0
#define entering    1                /* its first Txn is under way */
#define recovering  2                /* the answer was lost: the own key is read back */
#define unwatched   3                /* M_WATCHNOW only */
#define queued      4                /* waits for the predecessor's end */
#define deciding    5                /* the deciding Txn */
#define won         6
#define held        7                /* own clock looked at, the guard not told yet */
#define running     8                /* the guard was told, until it says gone */
#define releasing   9                /* guarded delete under way */
#define revoking    10
#define done        11
#define kept        12               /* the session goes on, without a hold */
byte st[N], mine[N], holds[N], age[N];      /* age = ticks since `sent` of the last verified renewal */
bit  dead[N], stopped[N], lost[N], muted[N], doubted[N];
byte renewal[N], renewalAge[N], seen[N];                  /* renewal: 0 idle, 1 under way, 2 replied */
/* ---- guard, child tree ---- */
bit guardDead[N], guardStopped[N], start[N], checked[N], gone[N], started[N], cleaning[N], cleaned[N];
bit child[N], escaped[N], escapedOnce[N];         /* direct child; descendant not reached by pdeathsig (nor, after setsid, by killpg) */
byte kills, stops, guardKills, guardStops, stales, losses; bit good; byte calm;
bit hitWrapper[N], hitGuard[N];

#define ALIVE(i) (child[i] || escaped[i])
#define WOK(i)   (!dead[i] && !stopped[i])
#define GOK(i)   (!guardDead[i] && !guardStopped[i])
#define LOSS(i)  (lost[i] || age[i] >= KILL-GRACE)
#ifndef M_NOSWEEP
#define SEEN(i)  (child[i] || escaped[i])  /* wrapper is a subreaper too: orphans of a dead guard come to it */
#define WKILLALL(i) child[i]=0; escaped[i]=0
#else
#define SEEN(i)  (child[i])            /* the process group only */
#define WKILLALL(i) child[i]=0
#endif
#ifdef M_UNGUARDED
#define DELOK(i,r) (key[i] != 0)
#else
#define DELOK(i,r) (key[i] == r)
#endif

inline delkey(i, z) {                /* the key of i goes away */
  if :: key[i] != 0 ->
        assert(!ALIVE(i));          /* (e), and stronger than (a): the key never goes before the tree */
        z = 0;
        do :: z < N -> if :: watch[z] == key[i] || (z == i && watch[z]) -> wake[z] = 1 :: else fi; z++
           :: else -> break od;
        key[i] = 0; z = 0
     :: else fi }
/* linearizable look: own key; the watch on the predecessor starts at the revision of this read */
inline look(i, z) {
  answer[i] = key[i]; watch[i] = 0; wake[i] = 0; z = 0;
  if :: key[i] -> do :: z < N -> if :: key[z] && key[z] < key[i] && key[z] > watch[i] -> watch[i] = key[z] :: else fi; z++
                     :: else -> break od
     :: else fi; z = 0 }
inline doput(i) { if :: lease[i] && key[i] == 0 -> revisions++; key[i] = revisions :: else fi }

inline bury(i) { age[i]=0; renewalAge[i]=0; seen[i]=0; doubted[i]=0; watch[i]=0; wake[i]=0; lost[i]=1; muted[i]=0; holds[i]=0; mine[i]=0;
  if :: renewal[i]!=1 || st[i]==revoking -> renewal[i]=0 :: else fi; gone[i]=0; cleaned[i]=0 }
inline bury2(i) { renewalAge[i]=0; seen[i]=0; doubted[i]=0; watch[i]=0; wake[i]=0; lost[i]=1; muted[i]=0; holds[i]=0; mine[i]=0; gone[i]=0;
  if :: renewal[i]!=1 -> renewal[i]=0 :: else fi;
  if :: asked[i]==READ || answered[i] -> asked[i]=NONE; about[i]=0 :: else fi; answered[i]=0; answer[i]=0; st[i]=running }
proctype Etcd(byte i) { byte z;
end:
 do
 :: d_step { asked[i]==PUT && !answered[i] -> doput(i); if :: !dead[i] -> look(i,z); answered[i]=1 :: else -> asked[i]=NONE fi }
 :: d_step { asked[i]==READ && !answered[i] -> look(i,z); answered[i]=1 }
 :: d_step { asked[i]==DEL && !answered[i] -> if :: DELOK(i,about[i]) -> delkey(i,z) :: else fi; about[i]=0;
             if :: dead[i] -> asked[i]=NONE :: else -> answered[i]=1 fi }
 :: d_step { asked[i]==REVOKE && !answered[i] -> delkey(i,z); lease[i]=0; left[i]=0; if :: dead[i] -> asked[i]=NONE :: else -> answered[i]=1 fi }
 :: d_step { dead[i] && !good && asked[i]!=NONE -> asked[i]=NONE; about[i]=0 }                /* dead client's request lost */
 /* delayed request of a client that has given up on it */
 :: d_step { late[i]==PUT -> doput(i); late[i]=NONE }
 :: d_step { late[i]==DEL -> if :: DELOK(i,lateAbout[i]) -> delkey(i,z) :: else fi; late[i]=NONE; lateAbout[i]=0 }
 :: d_step { late[i]!=NONE && !good -> late[i]=NONE; lateAbout[i]=0 }                              /* lost */
 /* renewal = renew, then read own key (merged: one step); stale = acknowledged in the old term, no effect */
 :: d_step { renewal[i]==1 -> if :: lease[i] -> left[i]=TTL :: else fi;
             if :: dead[i] -> renewal[i]=0 :: lease[i] && !dead[i] -> seen[i]=key[i]; renewal[i]=2 :: else -> renewal[i]=4 fi }
 :: d_step { renewal[i]==1 && stales<STALE && !good && lease[i] && !dead[i] -> stales++; seen[i]=key[i]; renewal[i]=3 }
 :: d_step { dead[i] && renewal[i]==1 && !good -> renewal[i]=0 }
 /* guard's clean-up: delete guarded by create revision, then revoke */
 :: d_step { cleaning[i] -> delkey(i,z); lease[i]=0; left[i]=0; cleaning[i]=0 }
 :: d_step { cleaning[i] && !good -> cleaning[i]=0 }                                            /* lost */
 :: d_step { lease[i] && left[i]==0 && st[i]!=idle -> delkey(i,z); lease[i]=0 }          /* expiry, any time after */
 od }

inline send(i,k) { asked[i]=k; answered[i]=0 }
inline taken(i)    { asked[i]=NONE; answered[i]=0; answer[i]=0; about[i]=0 }
#define UNANSWERED(i) (!good && losses < LOSSES)
inline unanswered(i) {
  losses++;
  if :: !answered[i] && late[i]==NONE && (asked[i]==PUT || asked[i]==DEL) -> late[i]=asked[i]; if :: asked[i]==DEL -> lateAbout[i]=about[i] :: else fi
     :: skip fi;
  taken(i); watch[i]=0; wake[i]=0 }
inline release(i) { /* leave: guarded delete if a revision is known, then revoke */
  watch[i]=0; wake[i]=0;
  if :: mine[i] -> send(i,DEL); about[i]=mine[i]; st[i]=releasing
     :: else -> send(i,REVOKE); st[i]=revoking fi }
inline looked(i) { /* after a read that shows the own key */
  taken(i);
  if :: watch[i]==0 -> wake[i]=0; st[i]=won
#ifdef M_WATCHNOW
     :: else -> wake[i]=0; st[i]=unwatched fi }
#else
     :: else -> st[i]=queued fi }
#endif
#ifdef M_BELIEVE
#define AFTERWAKE watch[i]=0; st[i]=won
#else
#define AFTERWAKE watch[i]=0; send(i,READ); st[i]=deciding
#endif

proctype Wrapper(byte i) {
end:
 do
 :: d_step { WOK(i) && st[i]==idle -> lease[i]=1; left[i]=TTL; age[i]=0; send(i,PUT); st[i]=entering }     /* Grant; campaign */
 :: d_step { WOK(i) && st[i]==entering && answered[i] ->
      if :: answer[i]==0 || LOSS(i) -> lost[i]=1; mine[i]=answer[i]; taken(i); release(i)
         :: else -> mine[i]=answer[i]; looked(i) fi }
 :: atomic { WOK(i) && st[i]==entering && UNANSWERED(i) -> unanswered(i); doubted[i]=1; send(i,READ); st[i]=recovering }
 /* ambiguous Txn: re-read; adopt, or put again, or give up */
 :: atomic { WOK(i) && st[i]==recovering && answered[i] ->
      if :: LOSS(i) -> lost[i]=1; mine[i]=answer[i]; taken(i); release(i)
         :: !LOSS(i) && answer[i] -> mine[i]=answer[i]; looked(i)
         :: !LOSS(i) && !answer[i] -> taken(i); send(i,PUT); st[i]=entering
         :: !LOSS(i) && !answer[i] && !good -> taken(i);      /* gives up (--wait ran out): "not there", so nothing to delete */
#if defined(KEEP) && defined(M_FORGETPUT)
            st[i]=kept
#else
            release(i)
#endif
      fi }
 :: atomic { WOK(i) && st[i]==recovering && UNANSWERED(i) -> unanswered(i); send(i,READ) }
 /* ---- queue ---- */
#ifdef M_WATCHNOW    /* watch opened later, without the revision of the read */
 :: d_step { WOK(i) && st[i]==unwatched -> wake[i]=0; st[i]=queued }
#endif
 :: d_step { WOK(i) && st[i]==queued && wake[i] -> wake[i]=0; AFTERWAKE }
#ifdef SPUR
 :: d_step { WOK(i) && st[i]==queued && !good -> wake[i]=0; AFTERWAKE }                                /* watch closed, compaction */
#endif
 :: d_step { WOK(i) && st[i]==queued && (LOSS(i) || (GIVEUP && !good)) -> if :: LOSS(i) -> lost[i]=1 :: else fi; release(i) }
 :: d_step { WOK(i) && st[i]==deciding && answered[i] ->
      if :: answer[i]!=mine[i] || LOSS(i) -> lost[i]=1; taken(i); release(i)
         :: else -> looked(i) fi }
 :: atomic { WOK(i) && st[i]==deciding && UNANSWERED(i) -> unanswered(i); send(i,READ) }
 /* ---- start: own clock checked; then (a stop may come in between) the message to the guard ---- */
 :: d_step { WOK(i) && st[i]==won -> if :: LOSS(i) || guardDead[i] -> lost[i]=1; release(i) :: else -> st[i]=held fi }
 :: d_step { WOK(i) && st[i]==held -> if :: guardDead[i] -> release(i) :: else -> start[i]=1; st[i]=running fi }
 /* ---- supervise ---- */
 :: d_step { WOK(i) && st[i]==running && !lost[i] && LOSS(i) -> lost[i]=1 }                /* TERM; no way back */
#ifdef M_EARLY
 :: d_step { WOK(i) && st[i]==running && (lost[i] || (started[i] && !child[i])) -> started[i]=0; release(i) }
#endif
 :: d_step { WOK(i) && st[i]==running && gone[i] -> gone[i]=0; started[i]=0; escapedOnce[i]=0; release(i) }
 :: d_step { WOK(i) && st[i]==running && guardDead[i] && SEEN(i) -> lost[i]=1; WKILLALL(i) }   /* guard's pipe ended */
 :: d_step { WOK(i) && st[i]==running && guardDead[i] && !SEEN(i) -> lost[i]=1; started[i]=0; gone[i]=0; release(i) }
#ifndef M_FROZENGUARD   /* guard late at the deadline: kill it, inherit what it started */
 :: d_step { WOK(i) && st[i]==running && age[i]>=KILL && !guardDead[i] && !gone[i] && (guardStopped[i] || !ALIVE(i)) -> guardDead[i]=1; guardStopped[i]=0; child[i]=0; checked[i]=0; start[i]=0 }
#else
 :: d_step { WOK(i) && st[i]==running && age[i]>=KILL && child[i] -> lost[i]=1; child[i]=0 }      /* wrapper's own KILL to the group */
#endif
 :: atomic { WOK(i) && st[i]==releasing && answered[i] -> taken(i); mine[i]=0; muted[i]=0;
      if :: send(i,REVOKE); st[i]=revoking
         :: !LOSS(i) && !guardDead[i] && holds[i]<MAXH-1 -> holds[i]++; send(i,PUT); st[i]=entering   /* again, same lease */
#ifdef KEEP
#ifndef M_FORGETPUT
         :: !LOSS(i) && !good && !doubted[i] -> st[i]=kept
#else
         :: !LOSS(i) && !good -> st[i]=kept
#endif
#endif
      fi }
 :: atomic { WOK(i) && st[i]==releasing && UNANSWERED(i) -> unanswered(i); muted[i]=1;                     /* failed resign stops renewals */
      if :: release(i) :: send(i,REVOKE); st[i]=revoking fi }
 :: d_step { WOK(i) && st[i]==kept && LOSS(i) -> lost[i]=1; release(i) }
 :: d_step { WOK(i) && st[i]==revoking && (answered[i] || UNANSWERED(i)) -> if :: !answered[i] -> losses++ :: else fi; taken(i); bury(i); st[i]=done; guardDead[i]=1; guardStopped[i]=0; start[i]=0; checked[i]=0; started[i]=0; escapedOnce[i]=0 }
 od }

/* renewals: only a verified one moves the deadline, counted from the send; guard hears of it over the pipe */
#define SESSION(i) ((st[i]>=entering && st[i]<=releasing || st[i]==kept) && !lost[i] && !muted[i])
/* search restrictions (under-approximations, only for finding counterexamples fast) */
#ifdef REN0
#define RENEWS(i) (i==0)
#endif
#ifdef NOREN
#define RENEWS(i) 0
#endif
#ifndef RENEWS
#define RENEWS(i) 1
#endif
proctype Renewals(byte i) {
end:
 do
 :: d_step { RENEWS(i) && WOK(i) && SESSION(i) && renewal[i]==0 && age[i]>=1 -> if :: age[i]>=KILL-GRACE -> lost[i]=1 :: else -> renewal[i]=1 fi }
 :: d_step { WOK(i) && renewal[i]>0 && (!good || !SESSION(i)) -> renewal[i]=0; renewalAge[i]=0; seen[i]=0 }            /* time-out */
 :: d_step { WOK(i) && renewal[i]==4 -> lost[i]=1; renewal[i]=0; renewalAge[i]=0; seen[i]=0 }                          /* lease not found */
#ifdef M_NOTERM
 :: d_step { WOK(i) && renewal[i]==3 -> renewal[i]=2 }
#else
#ifndef M_PLAINCOUNTS
 :: d_step { WOK(i) && renewal[i]==3 -> renewal[i]=0; renewalAge[i]=0; seen[i]=0 }                                      /* terms differ: not renewed */
#else
 :: d_step { WOK(i) && renewal[i]==3 -> if :: seen[i]==0 && mine[i]==0 -> renewal[i]=2 :: else -> renewal[i]=0; renewalAge[i]=0; seen[i]=0 fi }
#endif
#endif
 :: d_step { WOK(i) && renewal[i]==2 && SESSION(i) ->
      if :: age[i]>=KILL-GRACE -> lost[i]=1                                     /* no way back from loss */
         :: age[i]<KILL-GRACE && (seen[i]==mine[i] || st[i]==kept) ->                             /* also: no key yet (both 0), plain renewal */
#ifdef M_REPLY
            age[i]=0
#else
            age[i]=renewalAge[i]
#endif
         :: else -> skip                                                 /* key of another hold, or gone: next look decides */
      fi; renewal[i]=0; seen[i]=0; renewalAge[i]=0 }
 od }

proctype Guard(byte i) { byte z, l;
end:
 do
#ifndef M_NOGUARDCLOCK   /* guard compares its OWN clock with the deadline right before exec */
 :: d_step { GOK(i) && start[i] -> start[i]=0; if :: age[i] < KILL-GRACE && !dead[i] -> checked[i]=1 :: else -> gone[i]=1 fi }
#else
 :: d_step { GOK(i) && start[i] -> start[i]=0; checked[i]=1 }
#endif
 :: d_step { GOK(i) && checked[i] -> checked[i]=0; child[i]=1; escaped[i]=0; escapedOnce[i]=0; started[i]=1; z=0; l=1;
      do :: z<N -> if :: z!=i && ALIVE(z) -> assert(false) /* (a) two children at once */ :: else fi;
                   if :: key[z] && key[z]<key[i] -> l=0 :: else fi; z++
         :: else -> break od;
      assert(key[i]!=0 && l); z=0; l=0 }                 /* (b) lowest key held at start */
#ifndef M_GUARDWAITS
 :: d_step { GOK(i) && ALIVE(i) && age[i]>=KILL -> child[i]=0; escaped[i]=0 }                  /* KILL at the deadline */
#endif
#ifdef M_GUARDFIRST
 :: d_step { GOK(i) && dead[i] && !start[i] && !checked[i] && !cleaned[i] -> cleaning[i]=1; cleaned[i]=1 }
 :: d_step { GOK(i) && dead[i] && ALIVE(i) && cleaned[i] && !cleaning[i] -> child[i]=0; escaped[i]=0; started[i]=0 }
#else
 :: d_step { GOK(i) && dead[i] && ALIVE(i) -> child[i]=0; escaped[i]=0 }                   /* EOF */
 :: d_step { GOK(i) && dead[i] && !ALIVE(i) && !start[i] && !checked[i] ->             /* gone: clean up, end */
      if :: !cleaned[i] -> cleaning[i]=1 :: else fi; cleaned[i]=0; guardDead[i]=1; started[i]=0; escapedOnce[i]=0; gone[i]=0; age[i]=0 }
#endif
 :: d_step { GOK(i) && started[i] && !child[i] && escaped[i] -> escaped[i]=0 }                      /* leftovers after exit */
 :: d_step { GOK(i) && started[i] && !ALIVE(i) && !gone[i] && !dead[i] -> gone[i]=1 }    /* report: all gone */
 :: d_step { GOK(i) && started[i] && !ALIVE(i) && age[i]>=KILL && st[i]==running && !dead[i] && !cleaned[i] -> cleaning[i]=1; cleaned[i]=1 } /* frozen */
 od }

proctype Child(byte i) {
end:
 do
#ifdef ESCAPES
 :: d_step { child[i] && !escapedOnce[i] && !good -> escaped[i]=1; escapedOnce[i]=1 }
#endif
 :: d_step { child[i] -> child[i]=0 }                                                     /* ends by itself or by TERM */
 :: d_step { escaped[i] && !child[i] -> escaped[i]=0 }
 od }

inline up(v,m) { if :: v < m -> v++ :: else fi }
/* time may not pass while something is due that the stated assumptions call prompt */
#ifdef M_GUARDWAITS
#define GKNOWS(i) (dead[i])
#else
#define GKNOWS(i) 1
#endif
#ifndef M_FROZENGUARD
#define WDUE(i) (!guardDead[i] && !gone[i])
#else
#define WDUE(i) (child[i])
#endif
#ifdef M_GUARDWAITS
#define WBACK(i) 0
#else
#define WBACK(i) (WOK(i) && guardStopped[i] && st[i]==running && age[i]>=OVER && WDUE(i))   /* backup matters while the guard is stopped */
#endif
#define HOLDT(i) ( (GOK(i) && checked[i]) || (GOK(i) && ALIVE(i) && age[i]>=OVER && GKNOWS(i)) || \
                   (WOK(i) && st[i]==running && guardDead[i] && SEEN(i)) || WBACK(i) )
#if N==2
#define HOLDANY (HOLDT(0)||HOLDT(1))
#else
#define HOLDANY (HOLDT(0)||HOLDT(1)||HOLDT(2))
#endif
#define WAITING(i) (st[i]>=entering && st[i]<=held)
#define ORPHAN(i)  (key[i]!=0 && (dead[i] || st[i]==done || st[i]==kept))
#ifndef CALM
#define CALM (N*(TTL+3))
#endif

proctype Clock() { byte i;
end:
 do
 :: atomic { (good && calm<CALM && timeout) || (!good && !HOLDANY) ->     /* good: time passes only when nobody can act */
    d_step {
      i=0;
      do :: i<N ->
         if :: left[i]>0 -> left[i]-- :: else fi;
         if :: st[i]!=idle && st[i]!=done && !(dead[i] && guardDead[i]) -> up(age[i],OVER) :: else fi;
         if :: renewal[i]>0 && !dead[i] -> up(renewalAge[i],KILL-GRACE) :: else fi;
         i++
         :: else -> break od;
      i=0;
      if :: good -> calm++;
            if :: calm==CALM -> do :: i<N -> assert(!ORPHAN(i));                     /* (c) */
                                         assert(!(WAITING(i) && WOK(i)));        /* (d) nobody live still waits */
                                         assert(st[i]==done || st[i]==kept || dead[i] || stopped[i]);
                                         i++ :: else -> break od; i=0
               :: else fi
         :: else fi }
    }
 od }

/* At most the budgeted faults; never wrapper and guard of one contender. */
#define WRAPPERFREE(i) (!hitGuard[i])
#define GUARDFREE(i) (!hitWrapper[i])
#define LIVEW(i) (st[i]!=idle && st[i]!=done && !dead[i])
#if GKILL+GSTOP>0
#define MARKW(i) hitWrapper[i]=1
#else
#define MARKW(i) skip
#endif
proctype Faults(byte i) {
end:
 do
 :: d_step { !good && kills<WKILL && LIVEW(i) && WRAPPERFREE(i) -> kills++; bury2(i); dead[i]=1; MARKW(i); stopped[i]=0 }
 :: d_step { !good && stops<WSTOP && LIVEW(i) && !stopped[i] && WRAPPERFREE(i) -> stops++; stopped[i]=1; MARKW(i) }
 :: d_step { !good && stopped[i] -> stopped[i]=0 }
 :: d_step { !good && guardKills<GKILL && LIVEW(i) && !guardDead[i] && GUARDFREE(i) -> guardKills++; guardDead[i]=1; hitGuard[i]=1; guardStopped[i]=0;
             child[i]=0; start[i]=0; checked[i]=0 }                                        /* pdeathsig: direct child only */
 :: d_step { !good && guardStops<GSTOP && LIVEW(i) && !guardDead[i] && !guardStopped[i] && GUARDFREE(i) -> guardStops++; guardStopped[i]=1; hitGuard[i]=1 }
 :: d_step { !good && guardStopped[i] -> guardStopped[i]=0 }
 od }
#ifdef LIVE
proctype Good() { d_step { !good -> good=1 } }
#endif

init { byte i; atomic {
  i=0; do :: i<N -> asked[i]=NONE; late[i]=NONE; run Etcd(i); run Wrapper(i); run Renewals(i); run Guard(i); run Child(i); run Faults(i); i++ :: else -> break od;
  i=0; run Clock();
#ifdef LIVE
  run Good();
#endif
 } }
