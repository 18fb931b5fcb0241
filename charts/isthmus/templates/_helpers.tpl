{{- define "isthmus.labels" -}}
{{- $pairs := list -}}
{{- range $key, $value := .Values.labels }}{{ $pairs = append $pairs (printf "%s=%s" $key $value) }}{{ end -}}
{{- join "," (sortAlpha $pairs) -}}
{{- end -}}
{{- /*
A Job with the agent's image that runs files/NAME.mjs, its account, rights and files. Takes root, name, hook, rules; optional: namespace (of the rights; absent:
cluster-wide), data (further files), arguments (of a program of the image, in place of the file), first (before other hooks at the same point).
*/}}
{{- define "isthmus.hook" -}}
{{- $root := .root -}}
{{- $name := printf "%s-%s" $root.Release.Name .name | trunc 63 | trimSuffix "-" -}}
{{- $hook := .hook -}}
{{- $weight := ternary -10 0 (hasKey . "first") | int -}}
{{- $role := ternary "Role" "ClusterRole" (hasKey . "namespace") -}}
{{- $binding := printf "%sBinding" $role }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  annotations: {{- include "isthmus.hookAnnotations" (list $hook (sub $weight 2)) | nindent 4 }}
{{- if not .arguments }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  annotations: {{- include "isthmus.hookAnnotations" (list $hook (sub $weight 2)) | nindent 4 }}
data:
  api.mjs: {{ $root.Files.Get "files/api.mjs" | toJson }}
  {{ .name }}.mjs: {{ $root.Files.Get (printf "files/%s.mjs" .name) | toJson }}
  {{- range $file, $content := .data }}
  {{ $file }}: {{ $content | toJson }}
  {{- end }}
{{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $role }}
metadata:
  name: {{ $name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  annotations: {{- include "isthmus.hookAnnotations" (list $hook (sub $weight 2)) | nindent 4 }}
rules: {{- toYaml .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $binding }}
metadata:
  name: {{ $name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  annotations: {{- include "isthmus.hookAnnotations" (list $hook (sub $weight 1)) | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $role }}
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ $name }}
    namespace: {{ $root.Release.Namespace }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  annotations: {{- include "isthmus.hookAnnotations" (list $hook $weight) | nindent 4 }}
spec:
  backoffLimit: 0
  activeDeadlineSeconds: 240
  template:
    spec:
      serviceAccountName: {{ $name }}
      restartPolicy: Never
      nodeSelector:
        kubernetes.io/os: linux
      {{- /* The image names its user by number. OpenShift refuses one that a pod of an ordinary account names itself. */}}
      securityContext:
        runAsNonRoot: true
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: {{ .name }}
          image: {{ $root.Values.image | toJson }}
          imagePullPolicy: IfNotPresent
          command:
            - /usr/local/bin/node
            {{- if .arguments }}
            {{- range .arguments }}
            - {{ . | toJson }}
            {{- end }}
            {{- else }}
            - /hook/{{ .name }}.mjs
            {{- end }}
          env:
            - name: NODE_EXTRA_CA_CERTS
              value: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
            - name: TOKEN_FILE
              value: /var/run/secrets/kubernetes.io/serviceaccount/token
          terminationMessagePolicy: FallbackToLogsOnError
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          resources:
            requests:
              cpu: 10m
              memory: 64Mi
            limits:
              memory: 128Mi
          {{- if not .arguments }}
          volumeMounts:
            - name: hook
              mountPath: /hook
              readOnly: true
      volumes:
        - name: hook
          configMap:
            name: {{ $name }}
          {{- end }}
{{- end -}}
{{- define "isthmus.hookAnnotations" -}}
helm.sh/hook: {{ index . 0 }}
helm.sh/hook-weight: {{ index . 1 | toString | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}
