package httpfence_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/go-coord/coord/coordination/fence"
	"github.com/go-coord/coord/coordination/fence/httpfence"
)

// A service refuses writes of holders that were superseded; its caller sends the token of its lease.
func ExampleNew() {
	// The service: one key, its data in memory.
	mine := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "written") })
	handler, err := httpfence.New(mine, httpfence.Options{
		Guard: &fence.Memory{},
		Key:   func(*http.Request) string { return "reports" },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(handler)
	defer server.Close()

	// The caller.
	client := &http.Client{Transport: httpfence.Transport{Base: server.Client().Transport}}
	write := func(token uint64) {
		ctx := fence.WithToken(context.Background(), token)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp, err := client.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer resp.Body.Close()
		fmt.Println(resp.Status, httpfence.Refused(resp))
	}
	write(33)
	write(34)
	write(33)
	// Output:
	// 200 OK <nil>
	// 200 OK <nil>
	// 412 Precondition Failed fence: "reports": token 33 is below 34, the highest seen
}
