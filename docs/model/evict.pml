/* evict.pml: an operator asks a holder to leave, or deletes its key by force (internal/cli/command/evict.go).
 *
 * Modelled: an office that several hold one after the other; an operator who looks who holds, and acts on what was seen any
 * time later: by a request to leave, and, where that has no effect, by force. Both may be under way while the office changes
 * hands. A hold has a create revision and a lease of its own, as every hold of conch has. Not modelled: how a holder ends its
 * child (hold.pml), what a successor waits for after a deletion by force (settle.pml), time.
 *
 * Property: nobody is asked to leave, nor loses the key, but the hold that the operator saw.
 *
 * Mutations: M_NAME (the request is about whoever holds: neither lease nor revision in it), M_UNGUARDED (the put compares
 * nothing), M_FORCE (the deletion by force is not guarded by the revision).
 *
 * Exhausted (Spin 6.5.2): evict, 68 states.
 */
#define HOLDS 3

byte held, next = 1;                   /* which hold has the key: 0 nobody */
byte request;                          /* the evict key: about which hold; 0: none */
byte saw;                              /* whom the operator saw */
bit  asking, forcing;

proctype Office() {
end:
  do
  :: d_step { held == 0 && next <= HOLDS -> held = next; next++ }
  :: d_step { held != 0 && request == held -> assert(held == saw); held = 0; request = 0 }   /* released, evicted */
#ifdef M_NAME
  :: d_step { held != 0 -> held = 0 }
#else
  :: d_step { held != 0 -> if :: request == held -> request = 0 :: else fi; held = 0 }       /* ends: the request goes with its lease */
#endif
  od
}

proctype Operator() {
end:
  do
  :: d_step { held != 0 && saw == 0 -> saw = held }
  :: d_step { saw != 0 && !asking && !forcing -> asking = 1 }
  :: d_step { asking -> asking = 0;
#if defined(M_NAME)
       request = held                  /* whoever holds when it lands */
#elif defined(M_UNGUARDED)
       request = (held -> held : next)
#else
       if :: held == saw -> request = saw :: else fi
#endif
     }
  :: d_step { saw != 0 && !forcing -> forcing = 1 }
  :: d_step { forcing -> forcing = 0;
#ifdef M_FORCE
       if :: held != 0 -> assert(held == saw); held = 0; request = 0 :: else fi
#else
       if :: held == saw -> assert(held == saw); held = 0; request = 0 :: else fi
#endif
     }
  :: d_step { saw != 0 && !asking && !forcing && held != saw -> saw = 0 }                     /* it left: looks again */
  od
}

init { atomic { run Office(); run Operator() } }
