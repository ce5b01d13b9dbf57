/** Routes of the specification that this version recognises and does not have: a typed refusal, never a wrong success. */
import { ServiceError } from '../../../errors.ts';
import type { App, HttpContext } from '../context.ts';
import { invoke } from '../invoke.ts';

type Row = readonly [methods: string, ...urls: string[]];

/** Source: specification, "Endpoints". Methods are separated by blanks. */
const dataRoutes: readonly Row[] = [
  ['POST', '/ingest/media'],
  ['GET POST', '/rules'],
  ['POST', '/rules/sigma'],
  ['GET', '/cluster/nodes', '/cluster/topology'],
  ['POST', '/cluster/rebalance', '/cluster/drain/:node'],
];

const adminRoutes: readonly Row[] = [['GET', '/admin/system', '/admin/dashboard', '/admin/console']];

export function registerLater(app: App, context: HttpContext, access: 'token' | 'admin'): void {
  const action = access === 'admin' ? 'administer' : 'inspect';
  for (const [methods, ...urls] of access === 'admin' ? adminRoutes : dataRoutes) {
    for (const url of urls) {
      app.route({
        method: methods.split(' '),
        url,
        config: { access, action, bucket: 'read' },
        schema: { hide: true },
        // Nothing of a body is read: what it says does not matter.
        onRequest: async (request) =>
          invoke(context, request, action, undefined, () => {
            throw new ServiceError('REL_NOT_IMPLEMENTED', 'this version does not have this route yet');
          }),
        handler: () => null,
      });
    }
  }
}
