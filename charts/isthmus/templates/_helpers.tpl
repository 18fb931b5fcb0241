{{- define "isthmus.labels" -}}
{{- $pairs := list -}}
{{- range $key, $value := .Values.labels }}{{ $pairs = append $pairs (printf "%s=%s" $key $value) }}{{ end -}}
{{- join "," (sortAlpha $pairs) -}}
{{- end -}}
