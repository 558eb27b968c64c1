package statestore

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// CreateStack creates an empty stack; CodeExists when there is one of this name, CodeFormat when that one is damaged,
// CodeQuota when its organization may not have another one. Its versions continue those of the last stack of that name.
func (s *Store) CreateStack(ctx context.Context, name deployments.StackName, tags map[string]string) error {
	return s.createStack(ctx, name, rand.Text(), tags, 0)
}

// createStack creates an empty stack of an identity, which no other stack has, and which is about to get so many
// resources.
func (s *Store) createStack(
	ctx context.Context, name deployments.StackName, id string, tags map[string]string, resources int,
) error {
	if err := name.Validate(); err != nil {
		return err
	}
	_, err := s.Head(ctx, name)
	if err == nil {
		return exists(name)
	}
	if deployments.CodeOf(err) != deployments.CodeNotFound {
		return err
	}
	if err := s.Organizations.PlaceStack(ctx, name, resources); err != nil {
		return err
	}
	r, _, err := s.readTombstone(ctx, name)
	if err != nil {
		return err
	}
	h := Head{Format: Format, ID: id, Identity: r.firstIdentity(name), Next: max(r.Next, 1), Tags: tags}
	err = s.writeHead(ctx, name, h, bucket.Condition{Absent: true})
	if errors.Is(err, bucket.ErrChanged) {
		return exists(name)
	}
	if err == nil {
		err = s.keepApart(ctx, name, h)
	}
	return err
}

// exists returns the error about a stack that is there. By "already exists" the stock CLI and Pulumi's Automation API
// recognize it.
func exists(name deployments.StackName) error {
	return deployments.Errorf(deployments.CodeExists, "the stack %s already exists: select it, or use another name", name)
}

// CreateAsIs creates a stack with a deployment of the stock CLI, which is judged before the stack is there, and returns
// its version. If the stack does not get it all the same, it is removed, unless it has a state or another stack has its
// name. It fails as CreateStack and ImportAsIs do.
func (s *Store) CreateAsIs(
	ctx context.Context, x Exchange, tags map[string]string, in apitype.UntypedDeployment,
) (int, error) {
	x.ID, x.Base = rand.Text(), new(int)
	d, err := draftAsIs(ctx, x.Stack, x.ID, in)
	if err != nil {
		return 0, err
	}
	if err := s.createStack(ctx, x.Stack, x.ID, tags, len(d.states)); err != nil {
		return 0, err
	}
	version, err := s.replace(ctx, x, d)
	if err != nil {
		err = errors.Join(err, s.undoCreation(context.WithoutCancel(ctx), x.Stack, x.ID))
	}
	return version, err
}

// undoCreation removes the stack of an identity, unless it has a state, or is gone.
func (s *Store) undoCreation(ctx context.Context, name deployments.StackName, id string) error {
	used := errors.New("it is somebody's by now")
	h, err := s.lockStack(ctx, name, deployments.StackName{}, func(h *Head) error {
		if h.ID != id || h.Version > 0 {
			return used
		}
		return nil
	})
	switch {
	case errors.Is(err, used), deployments.CodeOf(err) == deployments.CodeNotFound:
		return nil
	case err != nil:
		return err
	}
	return s.deleteStack(ctx, name, h, h.ID)
}

// Stack describes a stack; CodeNotFound when there is none.
func (s *Store) Stack(ctx context.Context, name deployments.StackName) (deployments.StackInfo, error) {
	h, err := s.Head(ctx, name)
	if err != nil {
		return deployments.StackInfo{}, err
	}
	info := deployments.StackInfo{Stack: name, Version: h.Version, Updated: h.Updated, Resources: h.Resources,
		Pending: h.Pending, Tags: h.Tags, Identity: h.Identity}
	if h.Active != nil {
		u := deployments.UpdateName{StackName: name, Version: h.Active.Version}
		active, err := s.Updates.Info(ctx, u)
		if err != nil && !errors.Is(err, bucket.ErrAbsent) && bucket.Unreadable(err) == nil {
			return info, err
		}
		if err != nil {
			active = deployments.UpdateInfo{Update: u, Status: deployments.StatusRunning, Started: h.Active.Since}
		}
		info.Active = &active
	}
	return info, nil
}

// ListStacks describes the stacks of a project, or of an organization, sorted by name. An empty project or organization
// means all. A stack that cannot be read is listed with the reason.
func (s *Store) ListStacks(ctx context.Context, organization, project string) ([]deployments.StackInfo, error) {
	for what, part := range map[string]string{"organization": organization, "project": project} {
		if part == "" {
			continue
		}
		if err := deployments.ValidateName(what, part); err != nil {
			return nil, err
		}
	}
	folders, err := stackobjects.Folders(ctx, s.objects, organization, project)
	if err != nil {
		return nil, err
	}
	infos, list := make([]deployments.StackInfo, len(folders)), bucket.NewBudget(ctx)
	err = bucket.Each(folders, func(folder string) error {
		name, err := stackobjects.NameOf(folder)
		if err != nil {
			return nil //nolint:nilerr // no stack can have this name
		}
		info, err := s.Stack(ctx, name)
		if deployments.CodeOf(err) == deployments.CodeNotFound {
			return nil // removed meanwhile, or left by an interrupted removal
		}
		if bucket.Unreadable(err) != nil {
			info, err = deployments.StackInfo{Stack: name, Damaged: err.Error()}, nil
		}
		if err == nil {
			err = list.Keep(info.Size())
		}
		i, _ := slices.BinarySearch(folders, folder)
		infos[i] = info
		return err
	})
	infos = slices.DeleteFunc(infos, func(i deployments.StackInfo) bool { return i.Stack.Stack == "" })
	return infos, err
}

// TagStack replaces a stack's tags.
func (s *Store) TagStack(ctx context.Context, name deployments.StackName, tags map[string]string) error {
	_, err := s.changeHead(ctx, name, func(h *Head) (bool, error) {
		h.Tags = tags
		return true, nil
	})
	return err
}

// ChangeTags sets tags of a stack, removes some, and keeps its others.
func (s *Store) ChangeTags(
	ctx context.Context, name deployments.StackName, set map[string]string, removed []string,
) error {
	if len(set)+len(removed) == 0 {
		return nil
	}
	_, err := s.changeTags(ctx, name, set, removed)
	return err
}

// Tagged returns the head of a stack, with some tags set. Most updates set none.
func (s *Store) Tagged(ctx context.Context, name deployments.StackName, set map[string]string) (Head, error) {
	return s.changeTags(ctx, name, set, nil)
}

func (s *Store) changeTags(
	ctx context.Context, name deployments.StackName, set map[string]string, removed []string,
) (Head, error) {
	return s.changeReadHead(ctx, name, func(h *Head) (bool, error) {
		if len(set)+len(removed) == 0 {
			return false, nil
		}
		all := maps.Clone(h.Tags)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, set)
		for _, tag := range removed {
			delete(all, tag)
		}
		if maps.Equal(all, h.Tags) {
			return false, nil
		}
		h.Tags = all
		return true, deployments.ValidateTags(all)
	})
}

// RemoveStack removes a stack with its history. CodeConflict when it has an update running, or, unless forced,
// resources. Of a stack whose head was lost it removes what is left, if forced.
func (s *Store) RemoveStack(ctx context.Context, name deployments.StackName, force bool) error {
	h, err := s.lockStack(ctx, name, deployments.StackName{}, func(h *Head) error {
		if left := s.left(ctx, name, h); left > 0 && !force {
			return deployments.Errorf(deployments.CodeConflict,
				"the stack %s still has %s: destroy them first, or forget them with --force", name,
				deployments.Plural(left, "resource"))
		}
		return nil
	})
	if force && deployments.CodeOf(err) == deployments.CodeFormat && s.hasNoHead(ctx, name) == nil {
		return s.removeRemains(ctx, name)
	}
	if err != nil {
		return err
	}
	if h.Peer != "" { // an interrupted rename: the other name may still need the blobs
		peer, err := deployments.ParseStackName(h.Peer, deployments.StackName{})
		if err != nil {
			return bucket.Damaged(stackobjects.Key(name, "head.json"), err)
		}
		other, err := s.Head(ctx, peer)
		if err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
			return err
		}
		if err == nil && other.ID == h.ID {
			return s.deleteStack(ctx, name, h, "")
		}
	}
	return s.deleteStack(ctx, name, h, h.ID)
}

// left returns how many resources a stack has besides its own, which stands for nothing outside.
func (s *Store) left(ctx context.Context, name deployments.StackName, h *Head) int {
	if h.Resources != 1 {
		return h.Resources
	}
	all, err := s.resources(ctx, name, h.Version)
	if err == nil && len(all) == 1 && all[0].Type == resource.RootStackType {
		return 0
	}
	return h.Resources // also if they cannot be read
}

// removal is the version of the active update in a head during a removal or a rename.
const removal = "removal"

// deleteStack deletes the objects of a stack that is locked, its head last, so that an interrupted removal can be
// repeated, and the objects that all its names share. The next version of the name stays.
func (s *Store) deleteStack(ctx context.Context, name deployments.StackName, locked Head, id string) error {
	moved := ""
	if id == "" {
		moved = locked.Identity
	}
	if err := s.writeTombstone(ctx, name, locked.Next, moved, locked.Peer); err != nil {
		return err
	}
	if id != "" && locked.Identity == "" { // nobody gets it again
		key := s.Identities.Key(id, "")
		if err := s.objects.Delete(ctx, key); err != nil {
			return bucket.Failed(err, "delete "+key)
		}
	}
	if id != "" {
		if err := s.sealed.DeleteAll(ctx, bucket.Key("blobs", id, "")); err != nil {
			return err
		}
	}
	head := stackobjects.Key(name, "head.json")
	l, err := s.objects.List(ctx, bucket.Query{Prefix: stackobjects.Key(name, "")})
	if err != nil {
		return bucket.Failed(err, "list the stack "+name.String())
	}
	rest := slices.DeleteFunc(l.Keys, func(key string) bool { return key == head })
	if err := s.stillLocked(ctx, name, locked); err != nil {
		return err
	}
	err = bucket.Each(rest, func(key string) error { return bucket.Failed(s.objects.Delete(ctx, key), "delete "+key) })
	if err != nil {
		return err
	}
	if err := s.stillLocked(ctx, name, locked); err != nil {
		return err
	}
	s.cacheIdentity(name, Head{})
	return bucket.Failed(s.objects.Delete(ctx, head), "delete "+head)
}
