package coordtest

import _ "unsafe" // for go:linkname

// A watch of the etcd client waits, among others, on a channel that is never closed and that the client
// package makes when the program starts. What waits on a channel from outside a testing/synctest bubble is
// not durably blocked, so the fake clock would stand still as long as there is a watch. A nil channel is
// never closed either and lets the context package leave the wait out, so the channel is taken away here,
// before main runs and so before anybody can read the variable. Programs that do not link this package keep
// it. Should the client rename it, this does nothing, and TestWatchInBubble hangs and says so.
//
//go:linkname valCtxCh go.etcd.io/etcd/client/v3.valCtxCh
var valCtxCh chan struct{}

var _ = func() bool {
	valCtxCh = nil
	return true
}()
