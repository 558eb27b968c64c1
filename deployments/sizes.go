package deployments

// Sizes of what has texts of users: what each takes in memory without them.
const sizeOfThing, sizeOfText = 256, 16

func sizeOf(texts ...string) (size int64) {
	for _, text := range texts {
		size += sizeOfText + int64(len(text))
	}
	return size
}

// Size returns about how many bytes the grant takes in memory.
func (g Grant) Size() int64 { return sizeOfThing + sizeOf(g.Stacks...) + sizeOf(g.Organization) }

func sizeOfGrants(lists ...[]Grant) (size int64) {
	for _, list := range lists {
		for _, g := range list {
			size += g.Size()
		}
	}
	return size
}

// Size returns about how many bytes the caller takes in memory.
func (c Caller) Size() int64 {
	return sizeOfThing + sizeOfGrants(c.Grants...) + sizeOf(c.Token, c.Identity)
}

// Size returns about how many bytes the token takes in memory.
func (t Token) Size() int64 {
	size := 2*sizeOfThing + sizeOfGrants(t.Limit...) + sizeOf(t.Name, t.Damaged)
	if t.Grant != nil {
		size += t.Grant.Size()
	}
	if t.Origin != nil {
		size += sizeOf(t.Origin.Identity)
	}
	return size
}

// Size returns about how many bytes the member takes in memory, without the grants of teams, which members share.
func (m Member) Size() int64 {
	size := sizeOfThing + int64(len(m.Teams))*sizeOfThing + sizeOf(m.Name, m.Damaged)
	if m.Grant != nil {
		size += m.Grant.Size()
	}
	return size
}

// Size returns about how many bytes the team takes in memory, without its members.
func (t Team) Size() int64 { return t.Grant.Size() + sizeOf(t.Name, t.Damaged) }

// Size returns about how many bytes the trust takes in memory.
func (t Trust) Size() int64 {
	size := t.Grant.Size() + sizeOf(t.Audiences...) + sizeOf(t.Organization, t.Name, t.Issuer, t.Damaged)
	for _, c := range t.Conditions {
		size += sizeOf(c.Claim, c.Pattern)
	}
	return size
}

// Size returns about how many bytes the profile takes in memory.
func (p Profile) Size() int64 {
	size := 2*sizeOfThing + sizeOf(p.Stacks...) + sizeOf(p.Organization, p.Name, p.Description, p.By, p.Damaged)
	for _, v := range p.Variables {
		size += sizeOf(v.Name, v.Value)
	}
	if !p.Clouds.Empty() {
		size += sizeOfThing
	}
	return size
}

// Size returns about how many bytes the description of a stack takes in memory.
func (i StackInfo) Size() int64 {
	size := 2*sizeOfThing + sizeOf(i.Stack.Organization, i.Stack.Project, i.Stack.Stack, i.Damaged, i.Identity)
	for name, value := range i.Tags {
		size += sizeOf(name, value)
	}
	for _, u := range i.Queued {
		size += u.Size()
	}
	if i.Active != nil {
		size += i.Active.Size()
	}
	return size
}

// Size returns about how many bytes the description of an update takes in memory.
func (u UpdateInfo) Size() int64 {
	size := 4*sizeOfThing + sizeOf(u.Message, u.Initiator, u.Error)
	for kind := range u.Changes {
		size += sizeOfText + sizeOf(kind)
	}
	return size
}
