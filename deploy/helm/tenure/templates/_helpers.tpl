{{/* The name of what there is of each node pool. */}}
{{- define "tenure.name" -}}
{{- if eq .Values.pool "default" }}tenure{{ else }}tenure-{{ .Values.pool }}{{ end }}
{{- end }}

{{/* The name of its rights in the whole cluster. */}}
{{- define "tenure.role" -}}
{{- if eq .Values.pool "default" }}tenure{{ else }}tenure:{{ .Values.pool }}{{ end }}
{{- end }}

{{/* The image with its tag or digest. */}}
{{- define "tenure.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}
{{- end }}

{{/* Whether pods of other schedulers are moved, which takes further rights and an admission policy. */}}
{{- define "tenure.moves" -}}
{{- if not .Values.readOnly }}{{ dig "rescheduler" "schedulers" list .Values.scheduler | join "" }}{{ end }}
{{- end }}

{{/* Whether what is really in use is asked, which takes a further right. */}}
{{- define "tenure.measures" -}}
{{- if dig "rescheduler" "hotNodes" "enabled" false .Values.scheduler }}true{{ end }}
{{- end }}

{{/* The port of the Prometheus that is asked, for the network policy. */}}
{{- define "tenure.prometheusPort" -}}
{{- $address := urlParse .Values.prometheus }}
{{- if contains ":" $address.host }}{{ splitList ":" $address.host | last }}{{ else if eq $address.scheme "https" }}443{{ else }}80{{ end }}
{{- end }}

{{/* Stops where the cluster has no admission policies that change pods, which objects below this need. */}}
{{- define "tenure.mutates" -}}
{{- if semverCompare "<1.36.0-0" .Capabilities.KubeVersion.Version }}
{{- fail (printf "shareGpus and rescheduler.schedulers need Kubernetes 1.36 (MutatingAdmissionPolicy v1); this cluster has %s" .Capabilities.KubeVersion.Version) }}
{{- end }}
{{- end }}

{{/* The settings; read-only, every cause is in shadow whatever they say. */}}
{{- define "tenure.config" -}}
{{- $settings := deepCopy .Values.scheduler }}
{{- if .Values.readOnly }}
{{- $modes := dict }}
{{- range list "stale-gang" "quota" "reclaim" "preempt" "requeue" "consolidate" "reschedule" }}{{ $_ := set $modes . "shadow" }}{{ end }}
{{- $_ := set $settings "modes" $modes }}
{{- end -}}
apiVersion: tenure.dev/v1beta1
kind: SchedulerConfig
scheduler: {{- if $settings }}{{ toYaml $settings | nindent 2 }}{{ else }} {}{{ end }}
{{- end }}
