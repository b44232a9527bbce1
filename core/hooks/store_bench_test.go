package hooks

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// BenchmarkFor is what it costs to know that no file has changed, in one
// project and in many by turns.
func BenchmarkFor(b *testing.B) {
	root := b.TempDir()
	o := StoreOptions{GlobalDir: filepath.Join(root, "fermata"), ICode: true, ICodeGlobal: filepath.Join(root, ".chrys", "hooks"), TrustFile: filepath.Join(root, "trust.json")}
	project := filepath.Join(root, "p")
	for path, text := range map[string]string{
		filepath.Join(o.GlobalDir, "hooks.yaml"):         named("global"),
		filepath.Join(project, ".fermata", "hooks.yaml"): scripted("own", "check.sh"),
		filepath.Join(project, ".fermata", "check.sh"):   "exit 0\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			b.Fatal(err)
		}
	}
	store := NewStore(o)
	if _, err := store.Trust(project); err != nil {
		b.Fatal(err)
	}
	<-time.After(grain + calmFor)
	var many []string
	for i := range 100 {
		many = append(many, filepath.Join(root, strconv.Itoa(i)))
	}
	for name, dirs := range map[string][]string{"global only": {root}, "trusted project": {project}, "100 directories": many} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if set, err := store.For(dirs[i%len(dirs)]); err != nil || len(set.Hooks) == 0 {
					b.Fatal(err)
				}
			}
		})
	}
}
