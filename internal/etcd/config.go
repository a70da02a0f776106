package etcd

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

var (
	// ErrDirInUse means that another server runs on the data directory.
	ErrDirInUse = errors.New("in use")
	// ErrAddressInUse means that another process listens on the address.
	ErrAddressInUse = errors.New("address in use")
	// ErrNotLoopback means that an address beyond loopback was asked for without
	// TLS and without Config.Insecure.
	ErrNotLoopback = errors.New("not a loopback address")
	// ErrFatal means that etcd met an error after which it must not go on. The
	// process must exit.
	ErrFatal = errors.New("etcd cannot go on")
)

// loopbackAny is a free port on loopback.
const loopbackAny = "http://127.0.0.1:0"

// State says whether a member without data founds a cluster or joins one.
type State string

const (
	// StateNew founds the cluster together with the other initial members.
	StateNew State = "new"
	// StateExisting joins a cluster to which the member was added before.
	StateExisting State = "existing"
)

// Config describes an embedded member. A member that has data ignores
// InitialCluster, Token and State, as etcd does.
type Config struct {
	// Dir is the data directory, of this member alone. It is made with mode 0700.
	Dir string
	// Name is the member's name in the cluster. Empty means "writ".
	Name string
	// ClientURL is where clients are served. Empty means a free loopback port.
	ClientURL string
	// PeerURL is where other members are served. Empty means this member's URL
	// in InitialCluster or, alone, a free loopback port.
	PeerURL string
	// InitialCluster lists all founding members as name=url,name=url. Empty
	// means a cluster of one.
	InitialCluster string
	// Token keeps clusters of the same addresses apart. Empty means "writ".
	Token string
	// State is StateNew where empty.
	State State
	// QuotaBytes limits the database. Zero means DefaultQuotaBytes.
	QuotaBytes int64
	// ElectionTimeout of the members among themselves; their heartbeat is a
	// tenth of it. Zero means 1 s. On slow disks raise it, and with it the
	// shortest lease (one and a half times this).
	ElectionTimeout time.Duration
	// AutoCompaction, where not zero, lets etcd itself drop history older than
	// this. writ compacts by itself; this is a net below it.
	AutoCompaction time.Duration
	// ClientTLS and PeerTLS are needed for https URLs and only for those.
	ClientTLS, PeerTLS TLS
	// Insecure permits addresses beyond loopback without TLS.
	Insecure bool
	// UnsafeNoFsync loses acknowledged writes when the machine stops. It is for
	// unit tests only, never for a benchmark or a fault run.
	UnsafeNoFsync bool
}

// settings is a Config with every default applied and every URL read.
type settings struct {
	Config
	client, peer *url.URL
}

// resolve applies defaults and refuses what cannot work.
func (c Config) resolve() (settings, error) {
	if c.Dir == "" {
		return settings{}, errors.New("data directory is empty (hint: name a directory for etcd's data)")
	}
	c.Name = cmp.Or(c.Name, "writ")
	c.Token = cmp.Or(c.Token, "writ")
	c.State = cmp.Or(c.State, StateNew)
	c.QuotaBytes = cmp.Or(c.QuotaBytes, DefaultQuotaBytes)
	c.ElectionTimeout = cmp.Or(c.ElectionTimeout, defaultElectionTimeout)
	c.ClientURL = cmp.Or(c.ClientURL, loopbackAny)
	if err := c.checkNumbers(); err != nil {
		return settings{}, err
	}
	own, err := c.ownPeerURL()
	if err != nil {
		return settings{}, err
	}
	c.PeerURL = cmp.Or(c.PeerURL, own, loopbackAny)
	client, err := listenURL("client URL", c.ClientURL, c.ClientTLS, c.Insecure)
	if err != nil {
		return settings{}, err
	}
	peer, err := listenURL("peer URL", c.PeerURL, c.PeerTLS, c.Insecure)
	if err != nil {
		return settings{}, err
	}
	if c.InitialCluster != "" && peer.Port() == "0" {
		return settings{}, fmt.Errorf("peer URL %s: a member of a larger cluster needs a fixed port (hint: the port that the initial cluster names)", c.PeerURL)
	}
	return settings{Config: c, client: client, peer: peer}, nil
}

// checkNumbers refuses values out of range.
func (c Config) checkNumbers() error {
	if c.State != StateNew && c.State != StateExisting {
		return fmt.Errorf("initial cluster state %q: expected %q or %q", c.State, StateNew, StateExisting)
	}
	if c.QuotaBytes < 0 {
		return fmt.Errorf("quota of %d bytes: expected a positive size", c.QuotaBytes)
	}
	// etcd's own bounds: ten heartbeats of at least 10 ms, and 50 s.
	if c.ElectionTimeout < 100*time.Millisecond || c.ElectionTimeout > 50*time.Second {
		return fmt.Errorf("election timeout %s: expected 100ms to 50s", c.ElectionTimeout)
	}
	if c.AutoCompaction < 0 {
		return fmt.Errorf("auto compaction after %s: expected zero (off) or a positive time", c.AutoCompaction)
	}
	return nil
}

// ownPeerURL finds this member in the initial cluster.
func (c Config) ownPeerURL() (string, error) {
	if c.InitialCluster == "" {
		return "", nil
	}
	own := ""
	for pair := range strings.SplitSeq(c.InitialCluster, ",") {
		name, address, found := strings.Cut(strings.TrimSpace(pair), "=")
		if !found || name == "" || address == "" {
			return "", fmt.Errorf("initial cluster %q: expected name=url,name=url, found %q", c.InitialCluster, pair)
		}
		if name == c.Name {
			own = cmp.Or(own, address)
		}
	}
	if own == "" {
		return "", fmt.Errorf("initial cluster %q: it does not name this member, %q (hint: set the member's name to one of the list)", c.InitialCluster, c.Name)
	}
	return own, nil
}

// listenURL reads an address to listen on and refuses an unsafe one.
func listenURL(what, text string, files TLS, insecure bool) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", what, text, err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.Port() == "" || u.Path != "" {
		return nil, fmt.Errorf("%s %q: expected http://address:port or https://address:port", what, text)
	}
	secure := u.Scheme == "https"
	if secure && (files.CertFile == "" || files.KeyFile == "") {
		return nil, fmt.Errorf("%s %q: https needs a certificate and a key file", what, text)
	}
	if !secure && !files.empty() {
		return nil, fmt.Errorf("%s %q: TLS files are given, but the URL is plain (hint: https://%s)", what, text, u.Host)
	}
	if secure {
		if _, err := files.check(); err != nil {
			return nil, fmt.Errorf("%s %q: %w", what, text, err)
		}
	}
	ip := net.ParseIP(u.Hostname())
	if ip == nil && u.Hostname() != "localhost" {
		return nil, fmt.Errorf("%s %q: an address to listen on is expected, not a name (hint: 127.0.0.1)", what, text)
	}
	loopback := ip == nil || ip.IsLoopback()
	if !loopback && !insecure && (!secure || files.CAFile == "") {
		return nil, fmt.Errorf("%s %q: %w (hint: use https with certificate, key and CA files, or say that it may be insecure)", what, text, ErrNotLoopback)
	}
	return u, nil
}
