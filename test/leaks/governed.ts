/** Tenants, policies and agreements, the same in both worlds. */
import { jsonOf, type Stage, victimPath } from './stage.ts';

export const policies = {
  everybody: 'permit(principal, action, resource);',
  nobody: 'forbid(principal == User::"nobody-has-this-name", action, resource);',
  sealed:
    'forbid(principal, action, resource is Deal) when { resource has note && resource.note like "sealed*" } unless { principal in Role::"auditor" };',
  papers:
    'forbid(principal, action, resource is Paper) when { resource has kind && resource.kind == "sealed" } unless { principal in Role::"auditor" };',
  aside:
    '@mask("null") forbid(principal, action == Action::"readCell", resource == Column::"Paper.aside") unless { principal in Role::"auditor" };',
  pan: '@mask("last4") forbid(principal, action == Action::"readCell", resource == Column::"Card.pan") unless { principal in Role::"auditor" };',
  born: '@mask("year") forbid(principal, action == Action::"readCell", resource == Column::"Card.born") unless { principal in Role::"auditor" };',
  ceiling:
    '@mask("bucket:1000") forbid(principal, action == Action::"readCell", resource == Column::"Card.ceiling") unless { principal in Role::"auditor" };',
};

const tenants = [
  'acme',
  'acme-evil',
  'globex',
  'wayne',
  'umbrella',
  'cyber',
  'stark',
  'hooli',
  'tyrell',
  'rosen',
  'oscorp',
  'osborn',
];

export async function govern(stage: Stage): Promise<void> {
  for (const id of tenants) await stage.must('POST', '/tenants', stage.headers('platform'), JSON.stringify({ id }));
  for (const [id, policy] of Object.entries(policies)) await stage.admin('PUT', `/admin/policies/${id}`, { policy });
  await agree(stage, 'umbrella', victimPath, {
    target: {
      types: ['Deal'],
      where: 'resource has note && resource.note == "shared"',
      columns: ['id', 'note', 'amount', 'who'],
    },
    permission: ['read', 'export'],
    history: 'current_only',
    masking: { who: 'null' },
  });
  await agree(stage, 'umbrella', victimPath, {
    target: { types: ['Party'], where: 'resource has boss && resource.boss == "shared"', columns: ['id', 'name', 'boss'] },
    permission: ['read', 'export'],
    history: 'from_start',
  });
  const ended = await agree(stage, 'cyber', 'acme/us', { target: { types: ['Deal'] } });
  stage.ids.set('revoked agreement', ended);
  await stage.must('DELETE', `/tenants/acme/sharing/${ended}`, stage.headers('acme admin'));
  await stage.must('POST', '/tenants/stark/suspend', stage.headers('platform'), '{}');
  // Purged, and registered again under the same id: its tokens ended with it.
  await stage.must('DELETE', '/api/v1/tenants/hooli', stage.headers('platform'));
  await stage.must('POST', '/tenants', stage.headers('platform'), '{"id":"hooli"}');
  await stage.mint('hooli', { tenant_id: 'hooli', principal: 'loader' });
  stage.forget('hooli');
  await stage.put('Deal', 'hooli', 'hooli', [{ id: 'd1', who: 'p1', amount: 1, note: 'open' }]);
}

/** Proposed, accepted, active; its id. */
export async function agree(stage: Stage, tenant: 'umbrella' | 'cyber', assigner: string, terms: object): Promise<string> {
  const body = JSON.stringify({ assigner, assignee: tenant, ...terms });
  const made = await stage.must('POST', '/tenants/acme/sharing', stage.headers('acme admin'), body);
  const id = jsonOf(made)['id'] as string;
  const move = (who: 'acme admin' | 'umbrella admin' | 'cyber admin', of: string, state: string): Promise<unknown> =>
    stage.must('PATCH', `/tenants/${of}/sharing/${id}`, stage.headers(who), JSON.stringify({ state }));
  await move(`${tenant} admin`, tenant, 'accepted');
  await move('acme admin', 'acme', 'active');
  return id;
}
