// Tells the health of Kubernetes objects by Flux's own code: by the expressions of a Kustomization where there are some for the kind, else by
// kstatus. Reads {"checks": [...], "objects": [...]} from stdin, writes one status for each object, as a list.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type input struct {
	Checks  []kustomize.CustomHealthCheck `json:"checks"`
	Objects []json.RawMessage             `json:"objects"`
}

func main() {
	var given input
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		log.Fatal(err)
	}
	found := make([]string, 0, len(given.Objects))
	for _, raw := range given.Objects {
		object := &unstructured.Unstructured{}
		// As a client reads it: whole numbers are int64.
		if err := object.UnmarshalJSON(raw); err != nil {
			log.Fatal(err)
		}
		found = append(found, healthOf(object, given.Checks))
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		log.Fatal(err)
	}
}

func healthOf(object *unstructured.Unstructured, checks []kustomize.CustomHealthCheck) string {
	for _, check := range checks {
		if check.APIVersion != object.GetAPIVersion() || check.Kind != object.GetKind() {
			continue
		}
		evaluator, err := cel.NewStatusEvaluator(&check.HealthCheckExpressions)
		if err != nil {
			return err.Error()
		}
		result, err := evaluator.Evaluate(context.Background(), object)
		if err != nil {
			return err.Error()
		}
		return result.Status.String()
	}
	result, err := status.Compute(object)
	if err != nil {
		return err.Error()
	}
	return result.Status.String()
}
