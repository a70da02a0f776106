package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

var (
	// ErrUnreachable means that no endpoint answered in time.
	ErrUnreachable = errors.New("etcd is not reachable")
	// ErrNoLeader means that endpoints answer but have no leader, so that etcd
	// neither reads nor writes.
	ErrNoLeader = errors.New("etcd has no leader")
)

// DialConfig says how an etcd is reached.
type DialConfig struct {
	// Endpoints are http or https URLs, or host:port, which means http or, with
	// TLS files, https. All of one kind.
	Endpoints []string
	// TLS names the client's files. A CA alone authenticates the server.
	TLS TLS
	// Timeout bounds Dial. Zero means 5 s.
	Timeout time.Duration
}

// Clients reaches one etcd over connections of two kinds.
type Clients struct {
	// Bulk carries reads and writes.
	Bulk *clientv3.Client
	// Live carries watches and leases, which a large read must not hold up.
	Live *clientv3.Client
}

// Dial connects, and returns once at least one endpoint answered, none that
// answered is too old, and a linearizable read succeeded. Endpoints that do not
// answer, and the defects of those that do, are logged by name. The error wraps
// ErrUnreachable, ErrTooOld or ErrNoLeader, or blames the configuration. The
// clients outlive ctx; the caller closes them. A nil logger means none.
func Dial(ctx context.Context, config DialConfig, logger *zap.Logger) (*Clients, error) {
	if logger == nil {
		logger = zap.NewNop()
	}
	endpoints, security, err := config.resolve()
	if err != nil {
		return nil, fmt.Errorf("configure etcd client: %w", err)
	}
	timeout := cmp.Or(config.Timeout, defaultDialTimeout)
	clients, err := connect(endpoints, security, timeout, logger)
	if err != nil {
		return nil, fmt.Errorf("dial etcd at %s: %w", strings.Join(endpoints, ", "), err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := clients.examine(ctx, endpoints, logger); err != nil {
		return nil, errors.Join(fmt.Errorf("dial etcd at %s: %w", strings.Join(endpoints, ", "), err), clients.Close())
	}
	return clients, nil
}

// Close ends all connections; watches and renewals over them end too.
func (c *Clients) Close() error {
	return errors.Join(closed(c.Bulk.Close()), closed(c.Live.Close()))
}

// closed forgives a client for reporting that it was closed.
func closed(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Call gives a call its deadline and makes it fail at once, instead of waiting,
// at a member that is cut off from its leader. Every call to etcd uses it.
func Call(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(clientv3.WithRequireLeader(ctx), timeout)
}

// connect makes the two clients, which connect in the background.
func connect(endpoints []string, security *tls.Config, timeout time.Duration, logger *zap.Logger) (*Clients, error) {
	config := clientv3.Config{
		Endpoints:            endpoints,
		TLS:                  security,
		DialTimeout:          timeout,
		DialKeepAliveTime:    keepAliveTime,
		DialKeepAliveTimeout: keepAliveTimeout,
		Logger:               quiet(logger, func() bool { return false }).Named("etcd-client"),
	}
	bulk, err := clientv3.New(config)
	if err != nil {
		return nil, err
	}
	live, err := clientv3.New(config)
	if err != nil {
		return nil, errors.Join(err, bulk.Close())
	}
	return &Clients{Bulk: bulk, Live: live}, nil
}

// resolve reads endpoints and TLS files. The TLS configuration is nil for plain
// endpoints.
func (c DialConfig) resolve() ([]string, *tls.Config, error) {
	if len(c.Endpoints) == 0 {
		return nil, nil, errors.New("no endpoint is given (hint: http://127.0.0.1:2379)")
	}
	if c.Timeout < 0 {
		return nil, nil, fmt.Errorf("timeout %s: expected a positive time", c.Timeout)
	}
	schemes := make(map[string]bool)
	endpoints := make([]string, 0, len(c.Endpoints))
	for _, text := range c.Endpoints {
		u, err := c.endpoint(text)
		if err != nil {
			return nil, nil, err
		}
		schemes[u.Scheme] = true
		endpoints = append(endpoints, u.String())
	}
	if len(schemes) > 1 {
		return nil, nil, fmt.Errorf("endpoints %s: http and https are mixed", strings.Join(c.Endpoints, ", "))
	}
	if schemes["http"] {
		if !c.TLS.empty() {
			return nil, nil, fmt.Errorf("endpoints %s: TLS files are given, but the endpoints are plain (hint: use https://)", strings.Join(c.Endpoints, ", "))
		}
		return endpoints, nil, nil
	}
	security, err := c.TLS.check()
	return endpoints, security, err
}

// endpoint reads one endpoint.
func (c DialConfig) endpoint(text string) (*url.URL, error) {
	full := strings.TrimSpace(text)
	if !strings.Contains(full, "://") {
		scheme := "http://"
		if !c.TLS.empty() {
			scheme = "https://"
		}
		full = scheme + full
	}
	u, err := url.Parse(full)
	if err != nil {
		return nil, fmt.Errorf("endpoint %q: %w", text, err)
	}
	path := strings.TrimSuffix(u.Path, "/")
	if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.Port() == "" || path != "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("endpoint %q: expected host:port, http://host:port or https://host:port", text)
	}
	u.Path = ""
	return u, nil
}
