{{- define "deployctl.name" -}}
{{- ternary .Release.Name (printf "%s-deployctl" .Release.Name) (contains "deployctl" .Release.Name) | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "deployctl.selector" -}}
app.kubernetes.io/name: deployctl
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "deployctl.labels" -}}
{{ include "deployctl.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "deployctl.account" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "deployctl.name" .) }}
{{- else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{/* An image of a repository, tag and digest; .version is what it has if neither is given. */}}
{{- define "deployctl.image" -}}
{{- if .image.digest }}{{ printf "%s@%s" .image.repository .image.digest }}
{{- else }}{{ printf "%s:%s" .image.repository (.image.tag | default .version) }}{{ end }}
{{- end }}

{{/* The configuration file: the settings of values, and above them what the chart decides. */}}
{{- define "deployctl.settings" -}}
{{- $s := deepCopy .Values.settings }}
{{- $secrets := .Values.secrets }}
{{- $_ := required "settings.temporal.address must be given" (dig "temporal" "address" "" $s) }}
{{- $_ := required "settings.s3.bucket must be given" (dig "s3" "bucket" "" $s) }}
{{- $_ := set $s "listen" "0.0.0.0:7460" }}
{{- $_ := set $s "health-listen" "0.0.0.0:9465" }}
{{- $sandbox := dict "mode" .Values.worker.sandbox }}
{{- if eq .Values.worker.sandbox "run-as" }}{{- $_ := set $sandbox "run-as" .Values.worker.runAs }}{{ end }}
{{- $_ := set $s "sandbox" (merge $sandbox (get $s "sandbox" | default dict)) }}
{{- if not (hasKey $s "key-url") }}
{{- $_ := required "secrets.key must name a Secret, unless settings has a key-url" $secrets.key }}
{{- $_ := set $s "key-file" "/etc/deployctl/key/key" }}
{{- end }}
{{- $_ := required "secrets.tls must name a Secret: off loopback, the API needs a certificate" $secrets.tls }}
{{- $_ := set $s "tls-cert" "/etc/deployctl/tls/tls.crt" }}
{{- $_ := set $s "tls-key" "/etc/deployctl/tls/tls.key" }}
{{- if $secrets.s3 }}{{- $_ := set $s.s3 "secret-access-key-file" "/etc/deployctl/s3/secret-access-key" }}{{ end }}
{{- if $secrets.temporalAPIKey }}{{- $_ := set $s.temporal "api-key-file" "/etc/deployctl/temporal-api-key/api-key" }}{{ end }}
{{- if $secrets.temporalTLS }}
{{- $_ := set $s.temporal "tls-cert" "/etc/deployctl/temporal-tls/tls.crt" }}
{{- $_ := set $s.temporal "tls-key" "/etc/deployctl/temporal-tls/tls.key" }}
{{- end }}
{{- toYaml $s }}
{{- end }}

{{- define "deployctl.env" -}}
- {name: DEPLOYCTL_SETTINGS, value: /etc/deployctl/config/config.yaml}
{{- with .Values.secrets.s3 }}
- name: DEPLOYCTL_S3_ACCESS_KEY_ID
  valueFrom: {secretKeyRef: {name: {{ . }}, key: access-key-id}}
{{- end }}
{{- end }}

{{/* Each secret has a directory of its own, which the sandbox hides as a whole. */}}
{{- define "deployctl.mounts" -}}
- {name: config, mountPath: /etc/deployctl/config, readOnly: true}
{{- with .Values.secrets }}
{{- if .key }}
- {name: key, mountPath: /etc/deployctl/key, readOnly: true}
{{- end }}
- {name: tls, mountPath: /etc/deployctl/tls, readOnly: true}
{{- if .s3 }}
- {name: s3, mountPath: /etc/deployctl/s3, readOnly: true}
{{- end }}
{{- if .temporalAPIKey }}
- {name: temporal-api-key, mountPath: /etc/deployctl/temporal-api-key, readOnly: true}
{{- end }}
{{- if .temporalTLS }}
- {name: temporal-tls, mountPath: /etc/deployctl/temporal-tls, readOnly: true}
{{- end }}
{{- end }}
{{- end }}

{{- define "deployctl.volumes" -}}
- name: config
  configMap: {name: {{ include "deployctl.name" . }}}
{{- with .Values.secrets }}
{{- if .key }}
- name: key
  secret: {secretName: {{ .key }}, defaultMode: 0440}
{{- end }}
- name: tls
  secret: {secretName: {{ .tls }}, defaultMode: 0440}
{{- if .s3 }}
- name: s3
  secret: {secretName: {{ .s3 }}, defaultMode: 0440}
{{- end }}
{{- if .temporalAPIKey }}
- name: temporal-api-key
  secret: {secretName: {{ .temporalAPIKey }}, defaultMode: 0440}
{{- end }}
{{- if .temporalTLS }}
- name: temporal-tls
  secret: {secretName: {{ .temporalTLS }}, defaultMode: 0440}
{{- end }}
{{- end }}
{{- end }}
