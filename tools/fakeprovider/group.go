package fakeprovider

import (
	"context"

	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	comprovider "github.com/pulumi/pulumi/sdk/v3/go/pulumi/provider"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// group is the component as its program sees it.
type group struct {
	pulumi.ResourceState

	NamedArn pulumi.StringOutput `pulumi:"namedArn"`
	AutoName pulumi.StringOutput `pulumi:"autoName"`
}

type groupArgs struct {
	Prefix pulumi.StringInput `pulumi:"prefix"`
	Size   pulumi.IntPtrInput `pulumi:"size"`
}

// child is either child; what it does not have stays empty.
type child struct {
	pulumi.CustomResourceState

	Arn  pulumi.StringOutput `pulumi:"arn"`
	Name pulumi.StringOutput `pulumi:"name"`
}

// Construct registers a Group and its children with the engine that asks.
func (f *fake) Construct(ctx context.Context, req p.ConstructRequest) (p.ConstructResponse, error) {
	if req.Urn.Type() != "fake:index:Group" {
		return p.ConstructResponse{}, status.Errorf(codes.NotFound, "there is no component %s", req.Urn.Type())
	}
	return p.ProgramConstruct(ctx, req, constructGroup)
}

func constructGroup(ctx *pulumi.Context, typ, name string, in comprovider.ConstructInputs,
	options pulumi.ResourceOption,
) (*comprovider.ConstructResult, error) {
	var args groupArgs
	if err := in.CopyTo(&args); err != nil {
		return nil, err
	}
	var g group
	if err := ctx.RegisterComponentResource(typ, name, &g, options); err != nil {
		return nil, err
	}
	props := pulumi.Map{}
	if args.Size != nil {
		props["size"] = args.Size
	}
	var first, second child
	if err := ctx.RegisterResource("fake:index:Auto", name+"-auto", props, &second, pulumi.Parent(&g)); err != nil {
		return nil, err
	}
	props = pulumi.Map{"name": args.Prefix, "links": pulumi.StringArray{second.Name}}
	if args.Size != nil {
		props["size"] = args.Size
	}
	if err := ctx.RegisterResource("fake:index:Named", name+"-named", props, &first, pulumi.Parent(&g)); err != nil {
		return nil, err
	}
	g.NamedArn, g.AutoName = first.Arn, second.Name
	outputs := pulumi.Map{"namedArn": g.NamedArn, "autoName": g.AutoName}
	if err := ctx.RegisterResourceOutputs(&g, outputs); err != nil {
		return nil, err
	}
	return comprovider.NewConstructResult(&g)
}
