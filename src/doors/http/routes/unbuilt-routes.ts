/** Routes of the specification that this version recognises and does not have: a typed refusal, never a wrong success. */
import { ServiceError } from '../../../errors.ts';
import { route, type Route, type RouteMethod } from '../route.ts';

type UnbuiltRoutes = readonly [methods: readonly RouteMethod[], ...paths: readonly string[]];

/** Source: specification, "Endpoints". */
const unbuiltDataRoutes: readonly UnbuiltRoutes[] = [
  [['POST'], '/ingest/media'],
  [['GET'], '/cluster/nodes', '/cluster/topology'],
  [['POST'], '/cluster/rebalance', '/cluster/drain/:node'],
];

const unbuiltAdminRoutes: readonly UnbuiltRoutes[] = [[['GET'], '/admin/system']];

const unbuiltRoutesFor = (unbuiltAccess: 'token' | 'admin', unbuiltRoutes: readonly UnbuiltRoutes[]): readonly Route[] =>
  unbuiltRoutes.flatMap(([unbuiltMethods, ...unbuiltPaths]) =>
    unbuiltPaths.flatMap((unbuiltPath) =>
      unbuiltMethods.map((unbuiltMethod) =>
        route({
          method: unbuiltMethod,
          path: unbuiltPath,
          access: unbuiltAccess,
          action: unbuiltAccess === 'admin' ? 'administer' : 'inspect',
          bucket: 'read',
          // The body is not read: its content does not matter.
          reads: 'stream',
          example: { params: { node: 'a node' } },
          run: () => Promise.reject(new ServiceError('REL_NOT_IMPLEMENTED', 'this version does not have this route yet')),
        }),
      ),
    ),
  );

export const laterRoutes = unbuiltRoutesFor('token', unbuiltDataRoutes);
export const adminLaterRoutes = unbuiltRoutesFor('admin', unbuiltAdminRoutes);
