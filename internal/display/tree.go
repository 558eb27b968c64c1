package display

func newTree(o Options) View {
	o.Screen = nil
	return New(o)
}
