package etcd_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/writ-sched/writ/internal/etcd"
	"github.com/writ-sched/writ/internal/etcd/etcdtest"
)

// authority issues certificates for one test.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	a := &authority{dir: t.TempDir(), cert: cert, key: key}
	writePEM(t, filepath.Join(a.dir, "ca.pem"), "CERTIFICATE", der)
	return a
}

// issue writes a certificate for loopback, for both sides of a connection.
func (a *authority) issue(t *testing.T, name string) etcd.TLS {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	files := etcd.TLS{
		CertFile: filepath.Join(a.dir, name+".pem"), KeyFile: filepath.Join(a.dir, name+"-key.pem"),
		CAFile: filepath.Join(a.dir, "ca.pem"),
	}
	writePEM(t, files.CertFile, "CERTIFICATE", der)
	writePEM(t, files.KeyFile, "PRIVATE KEY", keyDER)
	return files
}

func writePEM(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

func TestMemberAndClientAuthenticateEachOther(t *testing.T) {
	t.Parallel()
	ca, stranger := newAuthority(t), newAuthority(t)
	member := etcdtest.StartOwn(t, func(c *etcd.Config) {
		c.ClientURL, c.PeerURL = "https://127.0.0.1:0", "https://127.0.0.1:0"
		c.ClientTLS, c.PeerTLS = ca.issue(t, "server"), ca.issue(t, "peer")
	})
	clients := dial(t, etcd.DialConfig{Endpoints: member.Endpoints(), TLS: ca.issue(t, "client")}, nil)
	_, err := clients.Bulk.Put(t.Context(), "a", "1")
	require.NoError(t, err)
	require.True(t, (<-clients.Live.Watch(t.Context(), "a", clientv3.WithCreatedNotify())).Created)
	members, err := clients.Members(t.Context())
	require.NoError(t, err)
	require.NoError(t, members[0].Err)

	foreign := stranger.issue(t, "client")
	for name, files := range map[string]etcd.TLS{
		"no client certificate":    {CAFile: foreign.CAFile},
		"server unknown to client": {CAFile: foreign.CAFile, CertFile: foreign.CertFile, KeyFile: foreign.KeyFile},
		"client unknown to server": {CAFile: ca.issue(t, "x").CAFile, CertFile: foreign.CertFile, KeyFile: foreign.KeyFile},
		"certificate is not shown": {CAFile: ca.issue(t, "y").CAFile},
		"server has another name":  {CAFile: ca.issue(t, "z").CAFile, ServerName: "elsewhere.example"},
	} {
		_, err := etcd.Dial(t.Context(), etcd.DialConfig{Endpoints: member.Endpoints(), TLS: files, Timeout: 500 * time.Millisecond}, nil)
		require.ErrorIs(t, err, etcd.ErrUnreachable, name)
		require.ErrorContains(t, err, "hint:")
	}
	_, err = etcd.Dial(t.Context(), etcd.DialConfig{
		Endpoints: member.Endpoints(), TLS: etcd.TLS{CAFile: foreign.CAFile}, Timeout: 2 * time.Second,
	}, nil)
	require.ErrorContains(t, err, "certificate signed by unknown authority")
}

func TestWrongTLSFilesAreNamed(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	one, two := ca.issue(t, "one"), ca.issue(t, "two")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for want, files := range map[string]etcd.TLS{
		one.CertFile + " with key " + two.KeyFile: {CertFile: one.CertFile, KeyFile: two.KeyFile},
		"no-key.pem":               {CertFile: one.CertFile, KeyFile: "no-key.pem"},
		empty + " with key":        {CertFile: empty, KeyFile: one.KeyFile},
		empty + ": no certificate": {CertFile: one.CertFile, KeyFile: one.KeyFile, CAFile: empty},
	} {
		_, err := etcd.Dial(t.Context(), etcd.DialConfig{Endpoints: []string{"127.0.0.1:1"}, TLS: files}, nil)
		require.ErrorContains(t, err, want)
		_, err = etcd.New(etcd.Config{Dir: t.TempDir(), ClientURL: "https://127.0.0.1:0", ClientTLS: files}, nil)
		require.ErrorContains(t, err, want)
	}
	_, err := etcd.New(etcd.Config{Dir: t.TempDir(), ClientURL: "https://0.0.0.0:0", ClientTLS: etcd.TLS{CertFile: one.CertFile, KeyFile: one.KeyFile}}, nil)
	require.ErrorIs(t, err, etcd.ErrNotLoopback, "without a CA anybody may connect")
	_, err = etcd.New(etcd.Config{Dir: t.TempDir(), ClientURL: "https://0.0.0.0:0", ClientTLS: one}, nil)
	require.NoError(t, err)
}
