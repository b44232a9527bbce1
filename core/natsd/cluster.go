package natsd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Cluster is several servers in this process that replicate the core's account,
// for tests of what must also hold in a team's set-up. Its routes use loopback
// ports, so it cannot run inside a synctest bubble.
type Cluster struct {
	dir   string
	sync  bool
	doors *doors // one for all nodes: only the core connects
	ports []int

	mu    sync.Mutex
	nodes []*server.Server // nil while stopped
}

// StartCluster starts n servers that keep their stores in dir, and waits until
// they have elected a leader of JetStream.
func StartCluster(ctx context.Context, n int, dir string, syncAlways bool) (*Cluster, error) {
	c := &Cluster{dir: dir, sync: syncAlways, doors: newDoors(), nodes: make([]*server.Server, n)}
	var err error
	if c.ports, err = freePorts(n); err != nil {
		return nil, err
	}
	for i := range n {
		if err := c.Restart(i); err != nil {
			c.Close()
			return nil, err
		}
	}
	if err := c.await(ctx, c.ready); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Restart starts a node that was stopped on the store that it had.
func (c *Cluster) Restart(i int) error {
	var routes []string
	for _, p := range c.ports {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", p))
	}
	ns, err := startServer(&server.Options{
		ServerName: fmt.Sprintf("node-%d", i), NoSigs: true,
		Host: "127.0.0.1", Port: server.RANDOM_PORT, // routes wait for a client port; nobody has its secret
		Accounts: accounts(), SystemAccount: sysAccount,
		JetStream: true, StoreDir: filepath.Join(c.dir, fmt.Sprintf("node-%d", i)),
		JetStreamMaxMemory: maxMemory, SyncAlways: c.sync,
		MaxPayload: maxPayload, MaxPending: maxPending, DisableJetStreamBanner: true,
		Cluster: server.ClusterOpts{Name: "fermata-test", Host: "127.0.0.1", Port: c.ports[i]},
		Routes:  server.RoutesFromStr(strings.Join(routes, ",")),
	}, c.node(), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.nodes[i] = ns
	c.mu.Unlock()
	return nil
}

// node is a node's own view of the doors: the accounts differ, the secrets do not.
func (c *Cluster) node() *doors {
	d := newDoors()
	d.coreSecret, d.doorsSecret = c.doors.coreSecret, c.doors.doorsSecret
	return d
}

// Stop shuts a node down.
func (c *Cluster) Stop(i int) {
	c.mu.Lock()
	ns := c.nodes[i]
	c.nodes[i] = nil
	c.mu.Unlock()
	if ns != nil {
		stop(ns)
	}
}

// Close stops every node.
func (c *Cluster) Close() {
	for i := range c.nodes {
		c.Stop(i)
	}
}

// Core connects to the core's account through one node, and again to that node
// after it was restarted.
func (c *Cluster) Core(i int, o ...nats.Option) (*nats.Conn, error) {
	return connect(clusterNode{c, i}, c.doors.coreSecret, o)
}

type clusterNode struct {
	c *Cluster
	i int
}

// InProcessConn connects to the node as it is now.
func (n clusterNode) InProcessConn() (net.Conn, error) {
	n.c.mu.Lock()
	ns := n.c.nodes[n.i]
	n.c.mu.Unlock()
	if ns == nil {
		return nil, fmt.Errorf("node %d is stopped", n.i)
	}
	return ns.InProcessConn()
}

// Leader waits until a stream of the core's account has a leader and gives its
// node.
func (c *Cluster) Leader(ctx context.Context, stream string) (int, error) {
	leader := -1
	err := c.await(ctx, func() bool {
		leader = c.leader(stream)
		return leader >= 0
	})
	return leader, err
}

func (c *Cluster) leader(stream string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, ns := range c.nodes {
		if ns == nil {
			continue
		}
		if a, err := ns.LookupAccount(coreAccount); err == nil && a.JetStreamIsStreamLeader(stream) {
			return i
		}
	}
	return -1
}

func (c *Cluster) ready() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ns := range c.nodes {
		if ns != nil && ns.JetStreamIsLeader() && len(ns.JetStreamClusterPeers()) == len(c.nodes) {
			return true
		}
	}
	return false
}

func (c *Cluster) await(ctx context.Context, met func() bool) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !met() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the cluster has no leader: %w", ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// freePorts finds n free ports. All are held at once, so that no two are the same.
func freePorts(n int) (ports []int, err error) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			err = errors.Join(err, l.Close())
		}
	}()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		held = append(held, l)
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
