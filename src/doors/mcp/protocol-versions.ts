/** Versions of the Model Context Protocol: each way in has its own. */

/** What `POST /mcp/initialize` answers. Source: specification, "Versioning" 2. */
export const httpProtocolVersion = '2024-11-05';

/** What `POST /mcp` offers a client that names no older one; the SDK negotiates, and has to know it as its latest. */
export const jsonRpcProtocolVersion = '2025-11-25';
