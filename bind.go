package coord

import (
	"context"
	"time"
)

// bind is ctx, ended by its owner's end too, with the owner's cause.
func bind(ctx, owner context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(owner, func() { cancel(context.Cause(owner)) })
	return ctx, func() { stop(); cancel(nil) }
}

// answerWithin is how long a request under way may still be answered after its caller gave up.
const answerWithin = 250 * time.Millisecond

// patient is ctx with an end that comes answerWithin later: a request that is under way then may still be
// answered, and an answer makes an end that leaves nothing where silence leaves a doubt.
func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := endAfter(ctx, cancel)
	return late, func() { stop(); cancel() }
}

// endAfter calls cancel answerWithin after the end of ctx, unless it is stopped.
func endAfter(ctx context.Context, cancel func()) (stop func() bool) {
	return context.AfterFunc(ctx, func() { time.AfterFunc(answerWithin, cancel) })
}
