package coord

import "context"

// bind is ctx, ended by its owner's end too, with the owner's cause.
func bind(ctx, owner context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(owner, func() { cancel(context.Cause(owner)) })
	return ctx, func() { stop(); cancel(nil) }
}
