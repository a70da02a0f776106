package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// probeRetry is the pause between two tries to reach an endpoint.
	probeRetry = 100 * time.Millisecond
	// probeGrace is how long silent endpoints are waited for after an answer.
	probeGrace = time.Second
)

// finding is what one endpoint answered.
type finding struct {
	endpoint string
	version  Version
	err      error // nil where version is set
}

// examine asks every endpoint for its version, judges them, and makes sure that
// the cluster behind them can read.
func (c *Clients) examine(ctx context.Context, endpoints []string, logger *zap.Logger) error {
	findings := c.probeAll(ctx, endpoints)
	answered := 0
	var refused, silent []error
	warned := make(map[Version]bool)
	for _, f := range findings {
		if f.err != nil {
			silent = append(silent, fmt.Errorf("%s: %w", f.endpoint, f.err))
			continue
		}
		answered++
		if err := f.version.Supported(); err != nil {
			refused = append(refused, fmt.Errorf("%s: %w", f.endpoint, err))
			continue
		}
		if !warned[f.version] {
			warned[f.version] = true
			warn(f.version, f.endpoint, logger)
		}
	}
	if len(refused) > 0 {
		return joinLine(refused)
	}
	if answered == 0 {
		return fmt.Errorf("%w: %w (hint: is etcd running there, and are scheme and TLS files right?)", ErrUnreachable, joinLine(silent))
	}
	if err := c.probeRead(ctx); err != nil {
		return err
	}
	for _, err := range silent {
		logger.Warn("etcd endpoint does not answer; its version is not known", zap.Error(err))
	}
	return nil
}

// warn logs the defects of a version. Those that no upgrade removes are only
// information: a warning at every start would teach to ignore warnings.
func warn(v Version, endpoint string, logger *zap.Logger) {
	for _, w := range Warnings(v) {
		log := logger.Warn
		if w.Open {
			log = logger.Info
		}
		log("etcd version has a known defect", zap.String("defect", w.Name), zap.String("text", w.Text),
			zap.String("issues", w.Issues), zap.String("fixed_in", w.FixedIn),
			zap.Stringer("version", v), zap.String("endpoint", endpoint))
	}
}

// probeAll asks all endpoints at once. After an answer the silent ones get
// only a moment longer, so that one dead member does not slow every start.
func (c *Clients) probeAll(ctx context.Context, endpoints []string) []finding {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan finding, len(endpoints))
	for _, endpoint := range endpoints {
		go func() {
			version, err := c.probe(ctx, endpoint)
			answers <- finding{endpoint, version, err}
		}()
	}
	grace := time.NewTimer(0)
	grace.Stop()
	defer grace.Stop()
	var findings []finding
	for len(findings) < len(endpoints) {
		select {
		case f := <-answers:
			if f.err == nil {
				grace.Reset(probeGrace)
			}
			findings = append(findings, f)
		case <-grace.C:
			cancel()
		}
	}
	slices.SortFunc(findings, func(a, b finding) int { return cmp.Compare(a.endpoint, b.endpoint) })
	return findings
}

// probe asks one endpoint for its version until it answers or ctx ends, and then
// returns the last reason that grpc gave. It asks without waiting for the
// connection, since only so does grpc say why there is none.
func (c *Clients) probe(ctx context.Context, endpoint string) (Version, error) {
	conn, err := c.Bulk.Dial(endpoint)
	if err != nil {
		return Version{}, err
	}
	version, err := askVersion(ctx, pb.NewMaintenanceClient(conn))
	return version, errors.Join(err, conn.Close())
}

// askVersion repeats the question while the endpoint is unavailable.
func askVersion(ctx context.Context, client pb.MaintenanceClient) (Version, error) {
	retry := time.NewTicker(probeRetry)
	defer retry.Stop()
	last := errors.New("no answer in time")
	for {
		answer, err := client.Status(ctx, &pb.StatusRequest{})
		switch status.Code(err) {
		case codes.OK:
			return ParseVersion(answer.GetVersion())
		case codes.Unavailable:
			last = errors.New(status.Convert(err).Message())
		case codes.DeadlineExceeded, codes.Canceled:
			return Version{}, last
		default:
			return Version{}, fmt.Errorf("this is no etcd: %s", status.Convert(err).Message())
		}
		select {
		case <-ctx.Done():
			return Version{}, last
		case <-retry.C:
		}
	}
}

// probeRead makes one linearizable read, of a key that need not exist, until it
// succeeds or ctx ends.
func (c *Clients) probeRead(ctx context.Context) error {
	retry := time.NewTicker(probeRetry)
	defer retry.Stop()
	for {
		_, err := c.Bulk.Get(clientv3.WithRequireLeader(ctx), "health", clientv3.WithCountOnly())
		if err == nil || errors.Is(err, rpctypes.ErrPermissionDenied) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w (hint: does a majority of its members run?)", ErrNoLeader, err)
		case <-retry.C:
		}
	}
}

// joinLine joins errors into one that fits a line and still unwraps.
func joinLine(errs []error) error {
	verbs := strings.TrimSuffix(strings.Repeat("%w; ", len(errs)), "; ")
	args := make([]any, len(errs))
	for i, err := range errs {
		args[i] = err
	}
	return fmt.Errorf(verbs, args...)
}
