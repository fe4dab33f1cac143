package cli

import (
	"encoding/json"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// Settings are what it takes to reach etcd. They go to the guard as JSON, in memory that is sealed: never
// on a command line.
type Settings struct {
	Endpoints   []string      `json:"endpoints"`
	DialTimeout time.Duration `json:"dial_timeout"` // nanoseconds
	TLS         TLS           `json:"tls,omitzero"`
	User        string        `json:"user,omitempty"` // empty: none
	Password    Secret        `json:"password,omitempty"`
	LogFormat   string        `json:"log_format,omitempty"` // text or json: the release program has a word to say where it fails
}

// Encode gives the settings for another process of this program.
func (s Settings) Encode() []byte {
	raw, _ := json.Marshal(s) // of these types it cannot fail
	return raw
}

// DecodeSettings reads what Encode wrote.
func DecodeSettings(raw []byte) (Settings, error) {
	var s Settings
	if err := json.Unmarshal(raw, &s); err != nil {
		return Settings{}, fmt.Errorf("read settings: %w", err)
	}
	if len(s.Endpoints) == 0 || s.DialTimeout <= 0 {
		return Settings{}, fmt.Errorf("read settings: %d endpoints, dial timeout %v", len(s.Endpoints), s.DialTimeout)
	}
	return s, nil
}

// How a connection that says nothing is found out: asked after keepAliveTime (gRPC allows no less) and given
// up after keepAliveTimeout. It bounds how long a watch on a member that was stopped stays silent.
const (
	keepAliveTime    = 10 * time.Second
	keepAliveTimeout = 2 * time.Second
)

// reconnect is how soon an endpoint that could not be reached is tried again. gRPC's own pauses begin at a second and
// grow to two minutes: an etcd that restarts in five seconds would be found after nine, and a hold be lost by then.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
	MinConnectTimeout: 3 * time.Second,
}

// Client makes a client and begins to connect, without waiting for it: see Reach. The caller closes it.
// etcd's own log of the client is silenced; errors say what there is to say.
func (s Settings) Client() (*clientv3.Client, error) {
	creds, err := s.transport()
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	options := []grpc.DialOption{grpc.WithTransportCredentials(creds), grpc.WithConnectParams(reconnect)}
	if s.User != "" {
		options = append(options, (&login{user: s.User, password: s.Password}).options()...)
	}
	cli, err := clientv3.New(clientv3.Config{
		Endpoints:            s.Endpoints,
		DialKeepAliveTime:    keepAliveTime,
		DialKeepAliveTimeout: keepAliveTimeout,
		DialOptions:          options,
		Logger:               zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	cli.ActiveConnection().Connect()
	return cli, nil
}
