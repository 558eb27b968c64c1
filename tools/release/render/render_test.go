package render

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigs "sigs.k8s.io/yaml"
)

const chartDir = "../../../deploy/helm/deployctl"

// least are the values that must be given.
const least = `
image: {repository: registry.internal/deployctl}
settings:
  temporal: {address: "temporal.internal:7233", namespace: deployctl}
  s3: {bucket: deployctl-state, region: eu-central-1}
secrets: {key: deployctl-key, tls: deployctl-tls}
`

// all are values for everything.
const all = least + `
imagePullSecrets: [{name: registry}]
serviceAccount: {annotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::1:role/x"}}
serve:
  pulumi: {enabled: true}
  args: [--log-level=debug]
  env: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]
  service: {type: LoadBalancer, annotations: {a: b}}
  podAnnotations: {c: d}
  nodeSelector: {e: f}
  tolerations: [{key: g, operator: Exists}]
  affinity: {nodeAffinity: {}}
worker:
  image: {repository: registry.internal/worker, digest: "sha256:00"}
  args: [--organization, acme]
  env: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]
  podAnnotations: {c: d}
  nodeSelector: {e: f}
  tolerations: [{key: g, operator: Exists}]
  affinity: {nodeAffinity: {}}
`

// render returns the objects of the chart, as Kubernetes decodes them: strictly, so that a field which there is not is
// an error.
func render(t *testing.T, values string) ([]runtime.Object, error) {
	t.Helper()
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]any{}
	if err := sigs.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	full, err := util.ToRenderValues(chart, given, common.ReleaseOptions{Name: "prod", Namespace: "deployctl"},
		common.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Engine{Strict: true}.RenderWithContext(t.Context(), chart, full)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	err = errors.Join(appsv1.AddToScheme(scheme), corev1.AddToScheme(scheme), policyv1.AddToScheme(scheme))
	if err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []runtime.Object
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(name) != ".yaml" {
			continue
		}
		for documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(files[name]))); ; {
			text, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			object, _, err := decoder.Decode(text, nil, nil)
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, text)
			}
			objects = append(objects, object)
		}
	}
	return objects, nil
}

func rendered(t *testing.T, values string) []runtime.Object {
	t.Helper()
	objects, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// find returns the object of a type whose name ends in a suffix.
func find[T interface {
	runtime.Object
	GetName() string
}](t *testing.T, objects []runtime.Object, suffix string) T {
	t.Helper()
	for _, o := range objects {
		if found, ok := o.(T); ok && strings.HasSuffix(found.GetName(), suffix) {
			return found
		}
	}
	var none T
	t.Fatalf("there is no %T %s", none, suffix)
	return none
}

func TestTheChartIsRenderedAsKubernetesHasIt(t *testing.T) {
	for _, values := range []string{least, all,
		strings.Replace(all, "worker:\n", "worker:\n  sandbox: namespace\n", 1),
		strings.Replace(all, "worker:\n", "worker:\n  sandbox: \"off\"\n", 1),
		strings.Replace(all, "secrets: {", "secrets: {bootstrapToken: b, s3: s, temporalAPIKey: a, temporalTLS: t, ", 1)} {
		objects := rendered(t, values)
		if len(objects) != 6 {
			t.Errorf("there are %d objects", len(objects))
		}
		for _, name := range []string{"serve", "worker"} {
			d := find[*appsv1.Deployment](t, objects, name)
			pod := d.Spec.Template.Spec
			for key, value := range d.Spec.Selector.MatchLabels {
				if d.Spec.Template.Labels[key] != value {
					t.Errorf("%s selects %s=%s, which its pods do not have", name, key, value)
				}
			}
			holds(t, pod)
		}
		serve := find[*appsv1.Deployment](t, objects, "serve")
		for key, value := range find[*corev1.Service](t, objects, "serve").Spec.Selector {
			if serve.Spec.Template.Labels[key] != value {
				t.Errorf("the service selects %s=%s", key, value)
			}
		}
		find[*policyv1.PodDisruptionBudget](t, objects, "serve")
		find[*corev1.ServiceAccount](t, objects, serve.Spec.Template.Spec.ServiceAccountName)
	}
}

// holds reports what does not fit together in a pod: what is mounted, which ports are asked, and rights.
func holds(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	volumes, mounted := map[string]bool{}, map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
		if v.Secret != nil && *v.Secret.DefaultMode != 0o440 {
			t.Errorf("the secret %s has mode %o", v.Name, *v.Secret.DefaultMode)
		}
	}
	c := pod.Containers[0]
	for _, m := range c.VolumeMounts {
		mounted[m.Name] = true
	}
	if !maps.Equal(volumes, mounted) {
		t.Errorf("%s has the volumes %v, and mounts %v", c.Name, volumes, mounted)
	}
	ports := map[string]bool{}
	for _, p := range c.Ports {
		ports[p.Name] = true
	}
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if !ports[probe.HTTPGet.Port.StrVal] {
			t.Errorf("%s is asked at %s, where it does not listen", c.Name, probe.HTTPGet.Port.StrVal)
		}
	}
	s := c.SecurityContext
	drop := []corev1.Capability{"ALL"}
	if !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, drop) {
		t.Errorf("%s may %+v", c.Name, s)
	}
	if root := pod.SecurityContext.RunAsNonRoot == nil; root != (len(s.Capabilities.Add) == 8) {
		t.Errorf("%s is root: %v, with %v", c.Name, root, s.Capabilities.Add)
	}
	if pod.EnableServiceLinks == nil || *pod.EnableServiceLinks {
		t.Errorf("services are variables of %s", c.Name)
	}
}

func TestTheSettingsAreThoseOfTheValuesAndTheChart(t *testing.T) {
	for values, want := range map[string]string{
		least: `key-file: /etc/deployctl/key/key
listen: 0.0.0.0:7460
health-listen: 0.0.0.0:9465
log: {format: json}
s3: {bucket: deployctl-state, region: eu-central-1}
sandbox: {mode: run-as, run-as: 2000000000-2000065535}
temporal: {address: "temporal.internal:7233", namespace: deployctl}
tls-cert: /etc/deployctl/tls/tls.crt
tls-key: /etc/deployctl/tls/tls.key
`,
		strings.NewReplacer("secrets: {key: deployctl-key,", "secrets: {s3: s,", "settings:\n",
			"settings:\n  key-url: awskms://alias/x\n  listen: elsewhere\n  sandbox: {memory: 1GiB, mode: namespace}\n").
			Replace(least) +
			"worker: {sandbox: \"off\"}\n": `key-url: awskms://alias/x
listen: 0.0.0.0:7460
health-listen: 0.0.0.0:9465
log: {format: json}
s3: {bucket: deployctl-state, region: eu-central-1, secret-access-key-file: /etc/deployctl/s3/secret-access-key}
sandbox: {mode: "off", memory: 1GiB}
temporal: {address: "temporal.internal:7233", namespace: deployctl}
tls-cert: /etc/deployctl/tls/tls.crt
tls-key: /etc/deployctl/tls/tls.key
`,
	} {
		got := find[*corev1.ConfigMap](t, rendered(t, values), "deployctl").Data["config.yaml"]
		if a, b := canonical(t, got), canonical(t, want); a != b {
			t.Errorf("it is\n%s\nand not\n%s", a, b)
		}
	}
}

func canonical(t *testing.T, text string) string {
	t.Helper()
	var value any
	if err := sigs.UnmarshalStrict([]byte(text), &value); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	again, err := sigs.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(again)
}

func TestWhatMustBeGivenIsAskedFor(t *testing.T) {
	for without, want := range map[string]string{
		"image: {repository: registry.internal/deployctl}": "image.repository must be given",
		`address: "temporal.internal:7233", `:              "settings.temporal.address must be given",
		"bucket: deployctl-state, ":                        "settings.s3.bucket must be given",
		"key: deployctl-key, ":                             "secrets.key must name a Secret",
		", tls: deployctl-tls":                             "secrets.tls must name a Secret",
	} {
		if _, err := render(t, strings.Replace(least, without, "", 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without %q: %v", without, err)
		}
	}
	_, err := render(t, least+"worker: {sandbox: none}\n")
	if err == nil || !strings.Contains(err.Error(), "run-as, namespace or off") {
		t.Errorf("a sandbox that there is not: %v", err)
	}
}
