package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/keys"
	"github.com/deployctl/deployctl/worker"
	"github.com/urfave/cli/v2"
)

// keyCommand manages the sealing keys. It accesses the bucket directly, as serve and worker do. If the settings name no
// bucket and no server, it uses the bucket of this user's embedded service, which must be running.
func keyCommand(s *console.Env) *cli.Command {
	flags := []cli.Flag{settingsFlag, homeFlag}
	return &cli.Command{
		Name: "key", Usage: "manage the keys that seal the service's bucket",
		Subcommands: []*cli.Command{
			{Name: "ls", Usage: "list the keys, and how many objects of the bucket each one seals", Flags: flags,
				Action: devAction(s, runKeyLs)},
			{Name: "rotate", Usage: "create a new key, and reseal everything with it; running updates continue",
				Flags: flags, Action: devAction(s, runKeyRotate)},
			{Name: "reseal", Usage: "reseal with the newest key what older keys sealed", Flags: flags,
				Action: devAction(s, runKeyReseal)},
			{Name: "drop", Usage: "delete a key that nothing needs any more", ArgsUsage: "ID", Flags: flags,
				Action: devAction(s, runKeyDrop)},
			{
				Name: "adopt", Usage: "accept the bucket of an older deployctl, or the state of a stack that was " +
					"changed by hand",
				ArgsUsage: "[ORG/PROJECT/STACK]", Flags: flags, Action: devAction(s, runKeyAdopt),
			},
		},
	}
}

// keyInfrastructure returns the infrastructure in the settings, or the embedded service of this user, and says on
// stderr which one.
func (d *devCall) keyInfrastructure() (infrastructure, error) {
	if d.settings.Get(settings.S3Bucket) == "" {
		return d.embeddedInfrastructure()
	}
	in, err := foundationOf(d.settings, slog.New(slog.NewTextHandler(d.Err, nil)))
	if err == nil {
		_, _ = fmt.Fprintf(d.Err, "Using the bucket %s at %s%s.\n", in.s3.bucket, cmp.Or(in.s3.endpoint, "AWS"),
			in.s3.under())
	}
	return in, err
}

// embeddedInfrastructure returns the running embedded service, unless the settings name another service.
func (d *devCall) embeddedInfrastructure() (infrastructure, error) {
	if server := d.settings.Get(settings.Server); server != "" && !d.flags.IsSet(homeFlag.Name) {
		return infrastructure{}, deployments.Errorf(deployments.CodeInvalid,
			"this command does not call the service at %s (set by %s), but works on "+
				"its bucket: run it with the settings of serve (s3.bucket, key-file and so on), or with --home DIR "+
				"for an embedded service",
			server, d.settings.Source(settings.Server))
	}
	status, err := devserver.ReadStatus(d.home)
	if err != nil {
		return infrastructure{}, err
	}
	if status.State != devserver.Running {
		return infrastructure{}, deployments.Errorf(deployments.CodeInvalid,
			"no bucket is set (s3.bucket, DEPLOYCTL_S3_BUCKET), and the embedded "+
				"service is not running: run this with the settings of serve, or start the embedded service with "+
				"`deployctl dev --background`")
	}
	keys, err := devserver.ReadKeys(status.Home)
	if err != nil {
		return infrastructure{}, err
	}
	_, _ = fmt.Fprintf(d.Err, "Using the embedded service in %s.\n", status.Home)
	return embeddedInfrastructure(&devserver.Server{Status: status, Keys: keys}, "")
}

// keyStore opens the store, without a Temporal client.
func (d *devCall) keyStore(ctx context.Context, adopt bool) (*statestore.Store, error) {
	in, err := d.keyInfrastructure()
	if err != nil {
		return nil, err
	}
	in.adopt = in.adopt || adopt
	return worker.OpenStore(ctx, in.config())
}

func runKeyLs(ctx context.Context, d *devCall) error {
	store, err := d.keyStore(ctx, false)
	if err != nil {
		return err
	}
	keys, err := store.Keys.List(ctx, d.howFar())
	if err != nil {
		return err
	}
	d.say("%-10s %-17s %-17s %s", "KEY", "CREATED", "REPLACED", "OBJECTS")
	for _, key := range keys {
		d.say("%-10s %-17s %-17s %d", key.ID, day(key.Created), day(key.Retired), key.Objects)
	}
	return nil
}

func day(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}

func runKeyRotate(ctx context.Context, d *devCall) error {
	store, err := d.keyStore(ctx, false)
	if err != nil {
		return err
	}
	key, err := store.Keys.Rotate(ctx)
	if err != nil {
		return err
	}
	d.say("The key %s is now in use; running services switch to it by themselves.", key.ID)
	return d.reseal(ctx, store)
}

func runKeyReseal(ctx context.Context, d *devCall) error {
	store, err := d.keyStore(ctx, false)
	if err != nil {
		return err
	}
	return d.reseal(ctx, store)
}

func (d *devCall) reseal(ctx context.Context, store *statestore.Store) error {
	done, err := store.Keys.Reseal(ctx, d.howFar())
	d.say("Objects of the bucket that were resealed: %d.", done.Sealed)
	for _, key := range done.Damaged {
		_, _ = fmt.Fprintf(d.Err, "warning: %s cannot be decrypted, and stays as it is\n", key)
	}
	return err
}

// howFar returns what prints on stderr how many objects of the bucket are done, after a while and then every tellEvery,
// as a long update does.
func (d *devCall) howFar() keys.Tally {
	begun := time.Now()
	return every(tellEvery, begun, func(done, of int) {
		_, _ = fmt.Fprintf(d.Err, "%s: %d of %d objects done, %s\n", d.flags.Command.FullName(), done, of,
			time.Since(begun).Truncate(time.Second))
	})
}

const tellEvery = 15 * time.Second

// every returns a tally that is passed on when the interval is over since begun, and since it was passed on last.
func every(interval time.Duration, begun time.Time, tell keys.Tally) keys.Tally {
	last := begun
	return func(done, of int) {
		if now := time.Now(); now.Sub(last) >= interval {
			last = now
			tell(done, of)
		}
	}
}

// offers lists the keys that may be dropped.
func offers(ctx context.Context, s *console.Env, place string, flags *cli.Context) []string {
	if place != "key drop ID" {
		return nil
	}
	loaded, err := console.LoadSettings(s, flags)
	if err != nil {
		return nil
	}
	quiet := &console.Env{Err: io.Discard, Environ: s.Environ}
	store, err := (&devCall{quiet, flags, loaded, loaded.Get(settings.Home), nil}).keyStore(ctx, false)
	if err != nil {
		return nil
	}
	var ids []string
	for _, key := range store.Keys.Ring().Keys().Sealing {
		if !key.Retired.IsZero() {
			ids = append(ids, key.ID().String()+"\treplaced "+day(key.Retired))
		}
	}
	return ids
}

func runKeyDrop(ctx context.Context, d *devCall) error {
	id := d.flags.Args().First()
	in, err := d.keyInfrastructure()
	if err != nil {
		return err
	}
	connection, err := worker.Connect(ctx, in.config())
	if err != nil {
		return err
	}
	defer connection.Close()
	for _, key := range connection.Store.Keys.Ring().Keys().Sealing {
		if key.ID().String() != id || key.Retired.IsZero() {
			continue
		}
		needed, err := connection.NeedSealedBefore(ctx, key.Retired)
		if err != nil {
			return deployments.Errorf(deployments.CodeUnavailable, "cannot find out what needs the key %s: %w", id, err)
		}
		if needed != "" {
			return deployments.Errorf(deployments.CodeConflict, "the key %s was replaced on %s and is still needed "+
				"in Temporal: %s", id, day(key.Retired), needed)
		}
	}
	if err := connection.Store.Keys.Drop(ctx, id, d.howFar()); err != nil {
		return err
	}
	d.say("Deleted the key %s.", id)
	return nil
}

func runKeyAdopt(ctx context.Context, d *devCall) error {
	text := d.flags.Args().First()
	store, err := d.keyStore(ctx, text == "")
	if err != nil {
		return err
	}
	if text == "" {
		d.say("The bucket has its keys, and its stacks are authenticated.")
		return nil
	}
	name, err := deployments.ParseStackName(text, deployments.StackName{})
	if err != nil {
		return err
	}
	if err := store.AdoptStack(ctx, name); err != nil {
		return err
	}
	d.say("The head and the newest state of %s are accepted as they are.", name)
	return nil
}
