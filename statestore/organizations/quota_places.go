package organizations

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// placesKey is what of an organization has a place within its quota and may not be seen yet otherwise. It is changed by
// compare-and-swap, so that of any number of processes that look at the same time only as many get a place as are free.
func placesKey(organization string) string { return QuotaFolder + organization + "/places" }

// places are stacks that are about to be created, and updates that are about to begin or run.
type places struct {
	Stacks  []place `json:"stacks,omitempty"`
	Updates []place `json:"updates,omitempty"`
}

type place struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
}

const (
	// placeFor is how long a place is kept for what is not there yet: its process may have died.
	placeFor = time.Minute
	// placesUnseen is how many places updates have until it is looked which of them have ended.
	placesUnseen = 500
)

func isOf(name string) func(place) bool { return func(p place) bool { return p.Name == name } }

// changePlaces changes the places of an organization: change reports whether they must be written. It is called again
// when another process was faster. Places that cannot be read are forgotten.
func (s *Store) changePlaces(
	ctx context.Context, organization string, change func(*places) (write bool, err error),
) error {
	for {
		var p places
		tag, err := s.sealed.GetJSON(ctx, placesKey(organization), &p)
		condition := bucket.Condition{Tag: tag, Absent: tag == ""}
		switch {
		case errors.Is(err, bucket.ErrAbsent):
		case bucket.Unreadable(err) != nil:
			p, condition = places{}, bucket.Condition{}
		case err != nil:
			return err
		}
		write, err := change(&p)
		if err != nil || !write {
			return err
		}
		if err = s.sealed.PutJSON(ctx, placesKey(organization), p, condition); !errors.Is(err, bucket.ErrChanged) {
			return err
		}
	}
}

// PlaceStack takes a place for a stack that is about to get a name, with so many resources; CodeQuota when there is
// none.
func (s *Store) PlaceStack(ctx context.Context, name deployments.StackName, resources int) error {
	q, err := s.Quota(ctx, name.Organization)
	if err != nil {
		return err
	}
	if most, bounded := q[deployments.LimitResources]; bounded && resources > 0 {
		n, err := s.resourcesOf(ctx, name.Organization)
		if err == nil && n+int64(resources) > most {
			err = deployments.OverQuota(name.Organization, deployments.LimitResources, most, "would have "+
				deployments.Plural(int(n)+resources, "resource"), "")
		}
		if err != nil {
			return err
		}
	}
	most, bounded := q[deployments.LimitStacks]
	if !bounded {
		return nil
	}
	return s.changePlaces(ctx, name.Organization, func(p *places) (bool, error) {
		there, err := s.folders(ctx, name.Organization) // after the places: what had one until then is there
		if err != nil {
			return false, err
		}
		if int64(len(there)) >= most { // some may be the folders of stacks that are gone
			if there, err = s.withHeads(ctx, there); err != nil {
				return false, err
			}
		}
		if slices.Contains(there, name.String()) || slices.ContainsFunc(p.Stacks, isOf(name.String())) {
			return false, nil // an interrupted attempt
		}
		p.Stacks = slices.DeleteFunc(p.Stacks, func(p place) bool {
			return slices.Contains(there, p.Name) || s.sealed.Now().Sub(p.At) >= placeFor
		})
		if n := len(there) + len(p.Stacks); int64(n) >= most {
			return false, deployments.OverQuota(name.Organization, deployments.LimitStacks, most, "has "+
				deployments.Plural(n, "stack"), "remove one (`deployctl stack rm`)")
		}
		p.Stacks = append(p.Stacks, place{name.String(), s.sealed.Now().UTC()})
		return true, nil
	})
}

// withHeads returns those of the names that stacks have.
func (s *Store) withHeads(ctx context.Context, names []string) ([]string, error) {
	gone := make([]bool, len(names))
	err := bucket.Each(names, func(text string) error {
		_, err := s.sealed.Objects.Tag(ctx, stackobjects.Folder+text+"/head.json")
		if errors.Is(err, bucket.ErrAbsent) {
			i, _ := slices.BinarySearch(names, text)
			gone[i], err = true, nil
		}
		return bucket.Failed(err, "find the stack "+text)
	})
	var there []string
	for i, name := range names {
		if !gone[i] {
			there = append(there, name)
		}
	}
	return there, err
}

// PlaceUpdate takes a place for an update among those that its organization may have at a time. It says why the update
// has to wait; empty when it has its place, which it has until it ends.
func (s *Store) PlaceUpdate(ctx context.Context, u deployments.UpdateName) (why string, err error) {
	most, bounded, err := s.Limit(ctx, u.Organization, deployments.LimitUpdates)
	if err != nil || !bounded || u.Number() == 0 {
		return "", err
	}
	err = s.changePlaces(ctx, u.Organization, func(p *places) (_ bool, err error) {
		why = ""
		if slices.ContainsFunc(p.Updates, isOf(u.String())) {
			return false, nil // an interrupted attempt
		}
		if why, err = s.noPlace(ctx, u.Organization, p, most); err != nil || why != "" {
			return false, err
		}
		p.Updates = append(p.Updates, place{u.String(), s.sealed.Now().UTC()})
		return true, nil
	})
	return why, err
}

// NoPlace says why an update of an organization that is asked for now would have to wait for others of it; empty if it
// would not, or that is not known.
func (s *Store) NoPlace(ctx context.Context, organization string) (why string) {
	most, bounded, err := s.Limit(ctx, organization, deployments.LimitUpdates)
	if err != nil || !bounded {
		return ""
	}
	_ = s.changePlaces(ctx, organization, func(p *places) (bool, error) {
		why, err = s.noPlace(ctx, organization, p, most)
		return false, err
	})
	return why
}

// noPlace says why an update has to wait; empty if there is a place for it. It removes the places of those that have
// ended when there may be none.
func (s *Store) noPlace(ctx context.Context, organization string, p *places, most int64) (why string, err error) {
	if int64(len(p.Updates)) >= min(most, placesUnseen) {
		if p.Updates, err = s.stillThere(ctx, p.Updates); err != nil {
			return "", err
		}
	}
	if n := len(p.Updates); int64(n) >= most {
		why = "the organization " + organization + " runs " + deployments.Plural(n, "update") + ", and its quota allows " +
			deployments.LimitUpdates.Shown(most) + "; this one begins when another one has ended"
	}
	return why, nil
}

// stillThere returns the places of updates that have their stacks, or may be about to get them.
func (s *Store) stillThere(ctx context.Context, taken []place) ([]place, error) {
	names, kept := make([]string, len(taken)), make([]bool, len(taken))
	for i, p := range taken {
		names[i] = p.Name
	}
	err := bucket.Each(names, func(name string) error {
		i := slices.Index(names, name)
		u, err := deployments.ParseUpdateName(name)
		if err != nil {
			return nil //nolint:nilerr // no update has this name
		}
		stack, err := s.of.Head(ctx, u.StackName)
		switch {
		case deployments.CodeOf(err) == deployments.CodeNotFound, bucket.Unreadable(err) != nil:
			return nil // it cannot run
		case err != nil:
			return err
		}
		runs := stack.Update == u.Version
		begins := stack.Next <= u.Number() && s.sealed.Now().Sub(taken[i].At) < placeFor
		kept[i] = runs || begins
		return nil
	})
	var left []place
	for i, p := range taken {
		if kept[i] {
			left = append(left, p)
		}
	}
	return left, err
}
