// Package schedule answers one question: at which moments is a job due? It is pure time. It reads no clock, asks no host
// and imports next to nothing, so that every node of a cluster gets the same answer from the same words.
//
// # What is not promised
//
//   - Not that anything runs. A tick says when a job is due, not that somebody was there to start it. Jitter, start_at and
//     end_at, deadlines, catch-up and pauses belong to the engine: they are decisions about ticks and move none of them.
//   - Not that two versions of the time zone database agree. A government that moves its clocks moves ticks with them.
//     [Version] is what nodes compare before they rely on each other.
//   - Not that a schedule has a tick at all: @manual has none, @at has had its own some day, and a time of day that the
//     clocks of its zone always skip never comes under "skip" and "literal". [Schedule.Check] says so, seen from a moment.
//
// # A tick
//
// A tick is a moment at which a job is due, in whole seconds since 1970-01-01 00:00 UTC, from then until the end of the year
// 9999. It is also a name: the key of a claim ends in it. So a tick has to be the same number on all nodes, today and after
// an upgrade, whatever the host's clock, its TZ and its zoneinfo say. It is a function of
//
//	the expression   its language is in docs/schedule.md
//	Options          seconds, zone, DST mode, the job's name where the expression says H
//	the database     zoneinfo.zip beside this file: the bytes of the Go distribution's lib/time/zoneinfo.zip, and nothing else
//
// and of nothing else. A job with several expressions has the union of their ticks, each once.
//
// # From wall time to ticks
//
// A calendar expression matches wall times: what a clock on a wall in the zone shows. Most are shown once. Where clocks are set
// forward some are shown never, where they are set back some are shown twice. Which of these become ticks depends on the mode
// and on whether the expression is at fixed times or follows real time. As in cron, it follows real time if its hour or its
// minute (or its second) begins with a star; H/n counts as */n.
//
//	mode      fixed times                                                          with a star
//	cron      first moment at which the clock shows the wall time or a later one   whenever the clock shows it
//	skip      the same, unless what it shows is later: then none                   whenever the clock shows it
//	literal   whenever the clock shows it                                          whenever the clock shows it
//
// That first line is the whole of the daylight saving rule. A wall time that is shown once is a tick then. One that is shown
// twice is a tick the first time. One that is never shown is a tick at the first moment after the gap, and so are all others in
// the gap, and the one that the clock shows there: one tick, since a tick is a moment. It holds for any change of any size: half
// an hour on Lord Howe, a day that Samoa left out, an island that moves across the date line.
//
// # How it is found
//
// A zone is a row of segments with one offset each. "Whenever shown" takes the segment of a moment, asks the calendar for the
// next wall time from there, and is done if that lies in the segment; else it goes on with the next one, and leaps over those
// in which it cannot be. "First shown" keeps a mark: the highest wall time shown before a moment, plus one. It asks the
// calendar for the next wall time from the mark on, and then the zone for the first moment that reaches it. Both look at a day
// and a half around a change, since no offset is as large as 16 hours.
//
// The calendar finds the next wall time by sets of bits: the days of a month that match are computed at once, and the time of
// day by the lowest bit that is not too low. There is no loop over minutes, hours or days.
//
// Every expression that is accepted has a matching day within the ten calendar years after any day; [Parse] proves it over the 400
// years after which the calendar repeats itself, and refuses 30 February as well as what waits longer (the fifth Monday of a
// February comes every 28 years; 29 February across 2100 waits 8 and is fine). So nothing ever spins: a search ends at a tick or after
// ten years.
//
// # Where the rules come from
//
// Day-of-month or day-of-week, and what a star changes in that, is cron's (Paul Vixie, entry.c and cron.c, versions 3 and 4), as is the rule
// for fixed times across a change of the clocks, stated here without cron's limit of three hours, which exists since cron cannot
// tell such a change from a correction of the clock. L, W and # are Quartz's, H is Jenkins's. The proof is a second program that
// looks at every minute and knows none of this: oracle_test.go.
package schedule
