package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sort"
	"strings"
	"sync/atomic"
	"time"
)

func serve(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	port := flags.Int("port", 8080, "port to listen on")
	text := flags.String("text", "", "what / answers; the host name when empty")
	readyAfter := flags.Duration("ready-after", 0, "how long /ready answers 503")
	var calls []string
	flags.Func("call", "`URL` that / asks each time and whose answer it adds, indented; may be repeated", func(url string) error {
		calls = append(calls, url)
		return nil
	})
	if err := parse(flags, args, 0, 0); err != nil {
		return err
	}
	if *text == "" {
		*text, _ = os.Hostname()
	}
	server := &http.Server{Handler: logged(routes(*text, calls, time.Now().Add(*readyAfter))), ReadHeaderTimeout: 10 * time.Second}
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", *port))
	if err != nil {
		return err
	}
	fmt.Printf("listening on %s\n", listener.Addr())
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}

func routes(text string, calls []string, readyAt time.Time) http.Handler {
	var sick atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		answer, err := withCalls(r.Context(), text, calls)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		fmt.Fprintln(w, answer)
	})
	mux.HandleFunc("/env", func(w http.ResponseWriter, _ *http.Request) {
		all := map[string]string{}
		for _, pair := range os.Environ() {
			name, value, _ := strings.Cut(pair, "=")
			all[name] = value
		}
		answerJSON(w, all)
	})
	mux.HandleFunc("/headers", func(w http.ResponseWriter, r *http.Request) { answerJSON(w, r.Header) })
	mux.HandleFunc("/remote", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, r.RemoteAddr) })
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { answerHealth(w, !sick.Load()) })
	mux.HandleFunc("/ready", func(w http.ResponseWriter, _ *http.Request) { answerHealth(w, time.Now().After(readyAt)) })
	mux.HandleFunc("/sicken", func(w http.ResponseWriter, _ *http.Request) { sick.Store(true) })
	return mux
}

// withCalls asks one after the other: what is printed has the order of the flags.
func withCalls(ctx context.Context, text string, calls []string) (string, error) {
	lines := []string{text}
	for _, url := range calls {
		body, err := fetch(ctx, http.DefaultClient, url, "")
		if err != nil {
			return "", fmt.Errorf("%s: %w", url, err)
		}
		for _, line := range strings.Split(strings.TrimSpace(string(body)), "\n") {
			lines = append(lines, "  "+line)
		}
	}
	return strings.Join(lines, "\n"), nil
}

func answerHealth(w http.ResponseWriter, healthy bool) {
	if !healthy {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

func answerJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(value)
}

func logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Printf("%s %s from %s\n", r.Method, r.URL, r.RemoteAddr)
		next.ServeHTTP(w, r)
	})
}

// get prints the body; it fails unless the status is 2xx.
func get(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("get", flag.ContinueOnError)
	timeout := flags.Duration("timeout", 5*time.Second, "for the whole request")
	caFile := flags.String("ca", "", "PEM `file` with whom to trust over https")
	tokenFile := flags.String("token", "", "`file` with a bearer token to send")
	if err := parse(flags, args, 1, 1); err != nil {
		return err
	}
	client := &http.Client{}
	if *caFile != "" {
		pem, err := os.ReadFile(*caFile)
		if err != nil {
			return err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s holds no certificate", *caFile)
		}
		client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	}
	token := ""
	if *tokenFile != "" {
		content, err := os.ReadFile(*tokenFile)
		if err != nil {
			return err
		}
		token = strings.TrimSpace(string(content))
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	body, err := fetch(ctx, client, flags.Arg(0), token)
	os.Stdout.Write(body)
	return err
}

// fetch returns the body also beside an error about its status.
func fetch(ctx context.Context, client *http.Client, url, token string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode < 200 || response.StatusCode > 299) {
		err = fmt.Errorf("the answer was %s", response.Status)
	}
	return body, err
}

func udpEcho(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("udp-echo", flag.ContinueOnError)
	port := flags.Int("port", 9090, "port to listen on")
	if err := parse(flags, args, 0, 0); err != nil {
		return err
	}
	conn, err := net.ListenPacket("udp", fmt.Sprintf(":%d", *port))
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	fmt.Printf("listening on %s\n", conn.LocalAddr())
	buffer := make([]byte, 65536)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Printf("%d bytes from %s\n", n, from)
		if _, err := conn.WriteTo(buffer[:n], from); err != nil {
			fmt.Printf("no answer to %s: %v\n", from, err)
		}
	}
}

// udpSend sends one datagram and prints the answer.
func udpSend(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("udp-send", flag.ContinueOnError)
	timeout := flags.Duration("timeout", 5*time.Second, "how long to wait for the answer")
	if err := parse(flags, args, 2, 1000); err != nil {
		return err
	}
	conn, err := net.Dial("udp", flags.Arg(0))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(*timeout)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte(strings.Join(flags.Args()[1:], " "))); err != nil {
		return err
	}
	buffer := make([]byte, 65536)
	n, err := conn.Read(buffer)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", buffer[:n])
	return nil
}

// dns prints the addresses of a name, sorted, one a line.
func dns(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("dns", flag.ContinueOnError)
	timeout := flags.Duration("timeout", 5*time.Second, "for the whole look-up")
	if err := parse(flags, args, 1, 1); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, flags.Arg(0))
	if err != nil {
		return err
	}
	sort.Strings(addresses)
	fmt.Println(strings.Join(addresses, "\n"))
	return nil
}
