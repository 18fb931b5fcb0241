// Package v20170312 stands where the client of a cloud would be that flanneld compiles in, and that not every module proxy serves. The one backend that
// uses it is never chosen here: each call answers with an error.
package v20170312

import "errors"

var errAbsent = errors.New("this flanneld was built without the client of Tencent Cloud")

type Client struct{}

type Filter struct {
	Name   *string
	Values []*string
}

type Route struct {
	RouteId              *uint64
	DestinationCidrBlock *string
	GatewayType          *string
	GatewayId            *string
	RouteType            *string
	Enabled              *bool
}

type RouteTable struct {
	RouteTableId *string
	RouteSet     []*Route
}

type DescribeRouteTablesRequest struct{ Filters []*Filter }

type DescribeRouteTablesResponse struct{ Response *DescribeRouteTablesResponseParams }

type DescribeRouteTablesResponseParams struct{ RouteTableSet []*RouteTable }

type RoutesRequest struct {
	RouteTableId *string
	Routes       []*Route
}

func NewClientWithSecretId(_, _, _ string) (*Client, error) { return nil, errAbsent }

func NewDescribeRouteTablesRequest() *DescribeRouteTablesRequest { return &DescribeRouteTablesRequest{} }

func NewDeleteRoutesRequest() *RoutesRequest { return &RoutesRequest{} }

func NewCreateRoutesRequest() *RoutesRequest { return &RoutesRequest{} }

func (*Client) DescribeRouteTables(*DescribeRouteTablesRequest) (*DescribeRouteTablesResponse, error) {
	return nil, errAbsent
}

func (*Client) DeleteRoutes(*RoutesRequest) (*struct{}, error) { return nil, errAbsent }

func (*Client) CreateRoutes(*RoutesRequest) (*struct{}, error) { return nil, errAbsent }
