package tracing

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"iter"
	"slices"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"

	"github.com/fermata-hitl/fermata/events"
)

// VerifyOptions say what is verified. StoreID and Key are those of [Options].
// Now, when set, finds questions that outlived their deadline. Through, when
// set, is the last message whose spans must be there already.
type VerifyOptions struct {
	StoreID string
	Key     Key
	Now     events.Micros
	Through uint64
}

// Finding is one broken invariant:
//
//	S1  a question was asked once and ended at most once
//	S2  no end is missing: the operation has ended, or the deadline is over
//	S3  the spans are those of the things that ended, no more and no less
//	S4  all copies of a span say the same
//	S5  a span says what the log says
//	S6  a span says nothing that its schema and profile do not allow
//	S7  a span's parent is in the log, and what a person decided links to them
//
// Object is the id of the question, run, operation or span.
type Finding struct {
	Rule   string
	Object string
	Detail string
}

// Report is what [Verify] found. Spans counts different spans, Copies all.
type Report struct {
	Operations int
	Questions  int
	Spans      int
	Copies     int
	Findings   []Finding
}

// Verify holds spans against the log, by a fold of its own: it shares the ids
// and commitments with the projector, not its reading of the events. It keeps
// every span in memory. Spans of other stores and programs are passed over. An
// error says that the log or the spans could not be read.
func Verify(o VerifyOptions, log iter.Seq2[Record, error], spans iter.Seq2[Span, error]) (Report, error) {
	l := newLedger(o)
	for r, err := range log {
		if err == nil {
			err = l.record(r)
		}
		if err != nil {
			return Report{}, fmt.Errorf("verify: read the log: %w", err)
		}
	}
	l.overdue()

	report := Report{Operations: len(l.ops), Questions: len(l.questions)}
	hashes := map[trace.SpanID][sha256.Size]byte{}
	for s, err := range spans {
		if err != nil {
			return Report{}, fmt.Errorf("verify: %w", err)
		}
		if s.Text("fermata.store.id") != o.StoreID {
			continue
		}
		report.Copies++
		id, hash := trace.SpanID(s.SpanId), contentHash(s)
		if first, again := hashes[id]; again {
			if first != hash {
				l.find("S4", id.String(), "two copies differ")
			}
			continue
		}
		hashes[id] = hash
		l.compare(s)
	}
	for id, w := range l.want {
		if _, ok := hashes[id]; !ok && (o.Through == 0 || w.seq <= o.Through) {
			l.find("S3", w.object, "the span of this "+w.what+" is missing")
		}
	}
	report.Spans = len(hashes)
	slices.SortFunc(l.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Detail, b.Detail))
	})
	report.Findings = l.findings
	return report, nil
}

func contentHash(s Span) [sha256.Size]byte {
	m := proto.MarshalOptions{Deterministic: true}
	b, _ := m.Marshal(s.Resource) // what was decoded can be encoded
	b, _ = m.MarshalAppend(b, s.Span)
	return sha256.Sum256(b)
}

// compare holds one span against what the log wants it to be.
func (l *ledger) compare(s Span) {
	w, ok := l.want[trace.SpanID(s.SpanId)]
	if !ok {
		l.find("S3", trace.SpanID(s.SpanId).String(), "span "+s.Name+" stands for nothing that ended in the log")
		return
	}
	for _, c := range []struct{ name, got, want string }{
		{"trace", trace.TraceID(s.TraceId).String(), w.trace.String()},
		{"start", fmt.Sprint(s.StartTimeUnixNano), fmt.Sprint(nanos(w.start))},
		{"end", fmt.Sprint(s.EndTimeUnixNano), fmt.Sprint(nanos(max(w.start, w.end)))},
		{"sequence", fmt.Sprint(s.Seq()), fmt.Sprint(w.seq)},
		{"result", s.Text("fermata.wait.result"), string(w.result)},
		{"end_reason", s.Text("fermata.wait.end_reason"), string(w.reason)},
		{"outcome", s.Text("fermata.operation.outcome"), w.outcome},
		{"hook.outcome", s.Text("fermata.hook.outcome"), string(w.ran)},
		{"hook.mode", s.Text("fermata.hook.mode"), string(w.mode)},
		{"version.commit", s.Text("fermata.version.commit"), l.commitment(w.version)},
	} {
		if c.got != c.want {
			l.find("S5", w.object, fmt.Sprintf("%s of the %s span is %q, the log says %q", c.name, w.what, c.got, c.want))
		}
	}
	l.compareParents(s, w)
	l.allowed(s, w)
}

func (l *ledger) compareParents(s Span, w want) {
	var parent trace.SpanID
	copy(parent[:], s.ParentSpanId)
	if parent != w.parent {
		l.find("S7", w.object, fmt.Sprintf("parent of the %s span is %s, the log says %s", w.what, parent, w.parent))
	}
	authorised := 0
	for _, link := range s.Links {
		to, ok := l.want[trace.SpanID(link.SpanId)]
		if !ok || to.result == "" {
			l.find("S7", w.object, "a link of the "+w.what+" span leads to no question")
			continue
		}
		if valueOf(link.Attributes, "fermata.link.kind").GetStringValue() == "authorised_by" {
			authorised++
		}
	}
	if w.what == "commit" && authorised != w.yes {
		l.find("S7", w.object, fmt.Sprintf("the commit links to %d answers, the log has %d for this version", authorised, w.yes))
	}
}

// allowed checks what a span of the metadata profile may say.
func (l *ledger) allowed(s Span, w want) {
	if got := s.Text("fermata.schema"); got != Schema {
		l.find("S6", w.object, fmt.Sprintf("schema %q is unknown", got))
	}
	for _, kv := range s.Attributes {
		if !slices.Contains(metadataNames[:], kv.Key) {
			l.find("S6", w.object, fmt.Sprintf("attribute %q does not belong in a span", kv.Key))
		}
	}
}

func (l *ledger) commitment(d events.Digest) string {
	if d == "" {
		return ""
	}
	return l.o.Key.Version(d)
}

func (l *ledger) find(rule, object, detail string) {
	l.findings = append(l.findings, Finding{Rule: rule, Object: object, Detail: detail})
}

// metadataNames are the attributes of the metadata profile. What is not here
// does not leave the machine.
var metadataNames = [...]string{
	"error.type",
	"fermata.actor.assurance", "fermata.actor.class", "fermata.actor.is_requester", "fermata.actor.ref",
	"fermata.agent.name", "fermata.approval.outcome", "fermata.audit.leaf", "fermata.audit.seq",
	"fermata.config.digest", "fermata.frontend.id", "fermata.frontend.kind", "fermata.frontends.offered",
	"fermata.hook.digest", "fermata.hook.effect", "fermata.hook.event", "fermata.hook.failed_open",
	"fermata.hook.mode", "fermata.hook.name", "fermata.hook.outcome", "fermata.hook.source", "fermata.hook.start",
	"fermata.operation.code", "fermata.operation.decided_by", "fermata.operation.end_reason",
	"fermata.operation.id", "fermata.operation.kind", "fermata.operation.outcome",
	"fermata.question.id", "fermata.recheck.attempt", "fermata.schema", "fermata.store.id",
	"fermata.version.bytes", "fermata.version.commit", "fermata.version.seq",
	"fermata.wait.category", "fermata.wait.claim_ms", "fermata.wait.delivery_ms", "fermata.wait.end_reason",
	"fermata.wait.result", "fermata.wait.think_ms", "fermata.wait.timeout_s",
	"gen_ai.tool.call.id", "gen_ai.tool.name", "session.id",
}
