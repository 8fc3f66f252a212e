// Requests about configurations, and lists of the cluster that are refused entry by entry.

package access

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
)

type resourceKey struct {
	kind kmsg.ConfigResourceType
	name string
}

// resource gives 0, or the code with which an action on a configuration is refused. That of topics goes by the topic, that of groups by
// the group, every other is the cluster's.
func (p *pass) resource(action policy.Action, kind kmsg.ConfigResourceType, name string) int16 {
	if kind == kmsg.ConfigResourceTypeTopic {
		return p.topic(action, name, topicID{})
	}
	if kind == kmsg.ConfigResourceTypeGroupConfig {
		return p.group(name)
	}
	return p.cluster()
}

var configsDescribed = entry[kmsg.DescribeConfigsRequestResource, kmsg.DescribeConfigsResponseResource, resourceKey]{
	asked: func(r *kmsg.DescribeConfigsRequestResource) resourceKey {
		return resourceKey{r.ResourceType, r.ResourceName}
	},
	answered: func(r *kmsg.DescribeConfigsResponseResource) resourceKey {
		return resourceKey{r.ResourceType, r.ResourceName}
	},
	refuse: func(r *kmsg.DescribeConfigsRequestResource, code int16) kmsg.DescribeConfigsResponseResource {
		made := kmsg.NewDescribeConfigsResponseResource()
		made.ResourceType, made.ResourceName, made.ErrorCode, made.ErrorMessage = r.ResourceType, r.ResourceName, code, message()
		return made
	},
}

func describeConfigs(p *pass, q *kmsg.DescribeConfigsRequest) verdict {
	rest := *q
	left, refusals := sift(q.Resources, configsDescribed, func(r *kmsg.DescribeConfigsRequestResource) int16 {
		return p.resource(policy.ActionDescribe, r.ResourceType, r.ResourceName)
	})
	rest.Resources = left
	return part(&rest, len(left), refusals.any(), func(r *kmsg.DescribeConfigsResponse) { r.Resources = refusals.into(r.Resources) })
}

var configsAltered = entry[kmsg.AlterConfigsRequestResource, kmsg.AlterConfigsResponseResource, resourceKey]{
	asked: func(r *kmsg.AlterConfigsRequestResource) resourceKey {
		return resourceKey{r.ResourceType, r.ResourceName}
	},
	answered: func(r *kmsg.AlterConfigsResponseResource) resourceKey {
		return resourceKey{r.ResourceType, r.ResourceName}
	},
	refuse: func(r *kmsg.AlterConfigsRequestResource, code int16) kmsg.AlterConfigsResponseResource {
		made := kmsg.NewAlterConfigsResponseResource()
		made.ResourceType, made.ResourceName, made.ErrorCode, made.ErrorMessage = r.ResourceType, r.ResourceName, code, message()
		return made
	},
}

func alterConfigs(p *pass, q *kmsg.AlterConfigsRequest) verdict {
	rest := *q
	left, refusals := sift(q.Resources, configsAltered, func(r *kmsg.AlterConfigsRequestResource) int16 {
		return p.resource(policy.ActionManage, r.ResourceType, r.ResourceName)
	})
	rest.Resources = left
	return part(&rest, len(left), refusals.any(), func(r *kmsg.AlterConfigsResponse) { r.Resources = refusals.into(r.Resources) })
}

var configsChanged = entry[kmsg.IncrementalAlterConfigsRequestResource, kmsg.IncrementalAlterConfigsResponseResource, resourceKey]{
	asked: func(r *kmsg.IncrementalAlterConfigsRequestResource) resourceKey {
		return resourceKey{r.ResourceType, r.ResourceName}
	},
	answered: func(r *kmsg.IncrementalAlterConfigsResponseResource) resourceKey {
		return resourceKey{r.ResourceType, r.ResourceName}
	},
	refuse: func(r *kmsg.IncrementalAlterConfigsRequestResource, code int16) kmsg.IncrementalAlterConfigsResponseResource {
		made := kmsg.NewIncrementalAlterConfigsResponseResource()
		made.ResourceType, made.ResourceName, made.ErrorCode, made.ErrorMessage = r.ResourceType, r.ResourceName, code, message()
		return made
	},
}

func incrementalAlterConfigs(p *pass, q *kmsg.IncrementalAlterConfigsRequest) verdict {
	rest := *q
	left, refusals := sift(q.Resources, configsChanged, func(r *kmsg.IncrementalAlterConfigsRequestResource) int16 {
		return p.resource(policy.ActionManage, r.ResourceType, r.ResourceName)
	})
	rest.Resources = left
	return part(&rest, len(left), refusals.any(), func(r *kmsg.IncrementalAlterConfigsResponse) { r.Resources = refusals.into(r.Resources) })
}

func aclsNotCreated(q *kmsg.CreateACLsRequest, r *kmsg.CreateACLsResponse, code int16) {
	r.Results = each(q.Creations, func(*kmsg.CreateACLsRequestCreation) kmsg.CreateACLsResponseResult {
		made := kmsg.NewCreateACLsResponseResult()
		made.ErrorCode, made.ErrorMessage = code, message()
		return made
	})
}

func aclsNotDeleted(q *kmsg.DeleteACLsRequest, r *kmsg.DeleteACLsResponse, code int16) {
	r.Results = each(q.Filters, func(*kmsg.DeleteACLsRequestFilter) kmsg.DeleteACLsResponseResult {
		made := kmsg.NewDeleteACLsResponseResult()
		made.ErrorCode, made.ErrorMessage = code, message()
		return made
	})
}

func quotasNotAltered(q *kmsg.AlterClientQuotasRequest, r *kmsg.AlterClientQuotasResponse, code int16) {
	r.Entries = each(q.Entries, func(e *kmsg.AlterClientQuotasRequestEntry) kmsg.AlterClientQuotasResponseEntry {
		made := kmsg.NewAlterClientQuotasResponseEntry()
		made.ErrorCode, made.ErrorMessage = code, message()
		made.Entity = each(e.Entity, func(e *kmsg.AlterClientQuotasRequestEntryEntity) kmsg.AlterClientQuotasResponseEntryEntity {
			entity := kmsg.NewAlterClientQuotasResponseEntryEntity()
			entity.Type, entity.Name = e.Type, e.Name
			return entity
		})
		return made
	})
}

func scramNotAltered(q *kmsg.AlterUserSCRAMCredentialsRequest, r *kmsg.AlterUserSCRAMCredentialsResponse, code int16) {
	refuse := func(user string) {
		made := kmsg.NewAlterUserSCRAMCredentialsResponseResult()
		made.User, made.ErrorCode, made.ErrorMessage = user, code, message()
		r.Results = append(r.Results, made)
	}
	for i := range q.Deletions {
		refuse(q.Deletions[i].Name)
	}
	for i := range q.Upsertions {
		refuse(q.Upsertions[i].Name)
	}
}
