/** Versions of the Model Context Protocol: each way in has its own. */

/** The version in the answer of `POST /mcp/initialize`. Source: specification, "Versioning" 2. */
export const httpProtocolVersion = '2024-11-05';

/** The version that `POST /mcp` offers a client that names no older one; the SDK negotiates, and has to know it as its latest. */
export const jsonRpcProtocolVersion = '2025-11-25';
