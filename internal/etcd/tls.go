package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"go.etcd.io/etcd/client/pkg/v3/transport"
)

// TLS names the PEM files of one side of a connection. The zero value means no
// TLS files: plain text for http, the system's roots for https.
type TLS struct {
	// CertFile is this side's certificate chain. It goes with KeyFile.
	CertFile string
	// KeyFile is the private key of CertFile.
	KeyFile string
	// CAFile holds the authorities that the other side's certificate must come
	// from. For a server it also makes client certificates mandatory.
	CAFile string
	// ServerName overrides the name that a client expects in the server's
	// certificate. Empty means the endpoint's host.
	ServerName string
}

// empty reports that no file is named.
func (t TLS) empty() bool {
	return t.CertFile == "" && t.KeyFile == "" && t.CAFile == ""
}

// check reads every named file, so that a wrong one is refused with its name
// instead of showing up later as a refused connection.
func (t TLS) check() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if (t.CertFile == "") != (t.KeyFile == "") {
		return nil, fmt.Errorf("read TLS files: certificate %q and key %q must be given together", t.CertFile, t.KeyFile)
	}
	if t.CertFile != "" {
		pair, err := loadPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if t.CAFile != "" {
		pool, err := loadRoots(t.CAFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = pool
	}
	return config, nil
}

// server turns the files into etcd's own settings.
func (t TLS) server() transport.TLSInfo {
	return transport.TLSInfo{
		CertFile:       t.CertFile,
		KeyFile:        t.KeyFile,
		TrustedCAFile:  t.CAFile,
		ClientCertAuth: t.CAFile != "",
	}
}

// loadPair reads a certificate and its key, and says which file is at fault.
func loadPair(certFile, keyFile string) (tls.Certificate, error) {
	cert, certErr := os.ReadFile(certFile)
	key, keyErr := os.ReadFile(keyFile)
	if err := errors.Join(certErr, keyErr); err != nil {
		return tls.Certificate{}, fmt.Errorf("read TLS files: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read TLS certificate %s with key %s: %w (hint: both must be PEM, and the key must be that certificate's)", certFile, keyFile, err)
	}
	return pair, nil
}

// loadRoots reads a file of certificate authorities.
func loadRoots(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read TLS authorities: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read TLS authorities %s: no certificate in it (hint: a PEM file with CERTIFICATE blocks is expected)", file)
	}
	return pool, nil
}
