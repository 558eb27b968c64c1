package access

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// owned are the things of one kind that organizations have under names, such as their teams: a sealed object for each.
type owned[T any] struct {
	*Store
	// kind is the word for one of them, and begins the name of their folder.
	kind string
	// created is where a thing has the time of its creation: a later one may have the same name.
	created func(*T) *time.Time
	// damaged describes one that cannot be read.
	damaged func(organization, name, why string) T
	// size says how many bytes one takes in memory.
	size func(T) int64
}

func (o owned[T]) folder() string { return o.kind + "s/" }

func (o owned[T]) key(organization, name string) string {
	return bucket.Key(o.kind+"s", organization, name)
}

func (o owned[T]) none(organization, name string) error {
	return deployments.Errorf(deployments.CodeNotFound, "the organization %s has no %s %s: `deployctl %s ls` lists those "+
		"there are", organization, o.kind, name, o.kind)
}

func (o owned[T]) get(ctx context.Context, organization, name string) (thing T, tag string, err error) {
	if err = deployments.ValidateName("organization", organization); err == nil {
		err = deployments.ValidateName(o.kind, name)
	}
	if err == nil {
		tag, err = o.sealed.GetJSON(ctx, o.key(organization, name), &thing)
	}
	return thing, tag, err
}

// put creates a thing, or replaces one, and keeps the time of its creation.
func (o owned[T]) put(ctx context.Context, organization, name string, thing T) error {
	defer o.callers.forget(organization)
	for {
		before, tag, err := o.get(ctx, organization, name)
		switch created := o.created(&thing); {
		case errors.Is(err, bucket.ErrAbsent), bucket.Unreadable(err) != nil:
			*created = o.sealed.Now().UTC()
			if full := o.room(ctx, o.folder()+organization+"/", maxOwned, organization, o.kind+"s", o.kind); full != nil &&
				errors.Is(err, bucket.ErrAbsent) {
				return full
			}
		case err != nil:
			return err
		default:
			*created = *o.created(&before)
		}
		c := bucket.Condition{Tag: tag, Absent: errors.Is(err, bucket.ErrAbsent)}
		if err = o.sealed.PutJSON(ctx, o.key(organization, name), thing, c); !errors.Is(err, bucket.ErrChanged) {
			return err
		}
	}
}

// keys returns where the things of an organization are, or all with AnyOrganization, sorted by organization and name.
func (o owned[T]) keys(ctx context.Context, organization string) ([]string, error) {
	folder := o.folder()
	if organization != deployments.AnyOrganization {
		if err := deployments.ValidateName("organization", organization); err != nil {
			return nil, err
		}
		folder += organization + "/"
	}
	l, err := o.sealed.Objects.List(ctx, bucket.Query{Prefix: folder})
	if err != nil {
		return nil, bucket.Failed(err, "list the "+o.kind+"s")
	}
	return l.Keys, nil
}

// at returns whose thing is at a key, and its name.
func (o owned[T]) at(key string) (organization, name string) {
	organization, name, _ = strings.Cut(strings.TrimPrefix(key, o.folder()), "/")
	return organization, name
}

// list describes the things of an organization, or all with AnyOrganization, sorted by organization and name.
func (o owned[T]) list(ctx context.Context, organization string) ([]T, error) {
	keys, err := o.keys(ctx, organization)
	if err != nil {
		return nil, err
	}
	return bucket.Gather(bucket.NewBudget(ctx), keys, o.size, func(key string) (T, error) {
		organization, name := o.at(key)
		return o.any(ctx, organization, name)
	})
}

// any describes a thing, which may be damaged; CodeNotFound when there is none of this name.
func (o owned[T]) any(ctx context.Context, organization, name string) (T, error) {
	thing, _, err := o.get(ctx, organization, name)
	switch {
	case errors.Is(err, bucket.ErrAbsent):
		err = o.none(organization, name)
	case bucket.Unreadable(err) != nil:
		thing, err = o.damaged(organization, name, err.Error()+", or remove it and add it again"), nil
	}
	return thing, err
}

// remove removes a thing, which may be damaged; CodeNotFound when there is none of this name.
func (o owned[T]) remove(ctx context.Context, organization, name string) error {
	_, _, err := o.get(ctx, organization, name)
	switch {
	case errors.Is(err, bucket.ErrAbsent):
		return o.none(organization, name)
	case err != nil && bucket.Unreadable(err) == nil:
		return err
	}
	defer o.callers.forget(organization)
	return bucket.Failed(o.sealed.Objects.Delete(ctx, o.key(organization, name)), "remove the "+o.kind+" "+name)
}
