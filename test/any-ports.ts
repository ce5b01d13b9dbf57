/** Settings by which every door of a server listens where the system has room: two servers of the tests never meet. */
export const anyPorts = {
  SERVICE_PORT: '0',
  SERVICE_ADMIN_BIND: '127.0.0.1:0',
  SERVICE_RELATIONAL_PORT: '0',
  SERVICE_OBJECT_PORT: '0',
  SERVICE_KV_PORT: '0',
  SERVICE_COLUMNAR_HTTP_PORT: '0',
  SERVICE_COLUMNAR_NATIVE_PORT: '0',
  SERVICE_DOCUMENT_PORT: '0',
  SERVICE_GRAPH_BINARY_PORT: '0',
  SERVICE_GRAPH_HTTP_PORT: '0',
  SERVICE_GRPC_PORT: '0',
  SERVICE_FLIGHT_PORT: '0',
} as const;
