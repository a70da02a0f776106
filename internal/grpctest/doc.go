// Package grpctest gives tests a gRPC server that ends with them.
//
// What can never happen: a server or its goroutines outlive the test; a server
// listens beyond loopback; a test that ends before its server has begun to
// serve fails for that.
package grpctest
