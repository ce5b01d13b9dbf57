/** Routes of the specification that this version recognises and does not have: a typed refusal, never a wrong success. */
import { ServiceError } from '../../../errors.ts';
import type { App, HttpContext } from '../context.ts';
import { invoke } from '../invoke.ts';

type Row = readonly [methods: string, ...urls: string[]];

/** Source: specification, "Endpoints". Methods are separated by blanks. */
const dataRoutes: readonly Row[] = [
  ['POST', '/search', '/multi-search', '/nl_query'],
  ['POST', '/rag/ingest', '/ingest/media'],
  ['GET', '/rag/ingest/:task_id'],
  ['POST', '/memory/remember', '/memory/remember/batch', '/memory/consolidate', '/memory/summarise'],
  ['POST', '/memory/associate', '/memory/associate/batch'],
  ['GET POST', '/memory/recall'],
  ['GET', '/memory/recognize/:id', '/memory/episodes', '/memory/justify/:id', '/memory/resolve/:id'],
  ['POST', '/mcp', '/mcp/initialize', '/mcp/tools/call'],
  ['GET', '/mcp/tools', '/mcp/sessions'],
  ['POST', '/graphql'],
  ['GET POST', '/sparql'],
  ['GET POST', '/rules'],
  ['POST', '/rules/sigma'],
  ['GET', '/cluster/nodes', '/cluster/topology'],
  ['POST', '/cluster/rebalance', '/cluster/drain/:node'],
];

const adminRoutes: readonly Row[] = [
  ['POST', '/admin/reindex'],
  ['GET', '/admin/system', '/admin/dashboard', '/admin/console'],
];

export function registerLater(app: App, context: HttpContext, access: 'token' | 'admin'): void {
  const action = access === 'admin' ? 'administer' : 'inspect';
  for (const [methods, ...urls] of access === 'admin' ? adminRoutes : dataRoutes) {
    for (const url of urls) {
      app.route({
        method: methods.split(' '),
        url,
        config: { access, action, bucket: url.startsWith('/memory/') ? 'memory' : 'read' },
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
