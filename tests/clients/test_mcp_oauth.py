"""A host of the official TypeScript SDK signs its user in at an identity provider, where a proxy ends TLS."""

from pathlib import Path

import pytest
from pydantic_core import from_json

from tests.clients.conftest import PACKAGES, ROOT, node, started
from tests.http.certificates import Authority
from tests.ports import silent_port

HOST = """
import { generateKeyPairSync, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [certificate, issuer, address, service] = process.argv.slice(2);
process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
const said = { resources: [] };

// The proxy.
const pem = readFileSync(certificate);
const proxy = https.createServer({ key: pem, cert: pem }, (request, answer) => {
  const headers = { ...request.headers, "x-forwarded-proto": "https", "x-forwarded-for": "203.0.113.5" };
  const passed = http.request(service + request.url, { method: request.method, headers }, (got) => {
    answer.writeHead(got.statusCode, got.headers);
    got.pipe(answer);
  });
  request.pipe(passed);
});

// The identity provider.
const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
const encoded = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const token = (aud) => {
  const claims = { iss: issuer, sub: "alice", aud, exp: Math.floor(Date.now() / 1000) + 600 };
  const text = `${encoded({ alg: "ES256", kid: "one", typ: "JWT" })}.${encoded(claims)}`;
  const signature = sign("sha256", Buffer.from(text), { key: keys.privateKey, dsaEncoding: "ieee-p1363" });
  return `${text}.${signature.toString("base64url")}`;
};
const provider = http.createServer(async (request, answer) => {
  const url = new URL(request.url, issuer);
  let body = "";
  for await (const piece of request) body += piece;
  const json = (value, status = 200) => {
    answer.writeHead(status, { "content-type": "application/json" });
    answer.end(JSON.stringify(value));
  };
  const endpoints = { authorization_endpoint: "authorize", token_endpoint: "token", registration_endpoint: "register" };
  if (url.pathname === "/.well-known/oauth-authorization-server") {
    const named = Object.entries(endpoints).map(([name, path]) => [name, `${issuer}/${path}`]);
    const more = { issuer, response_types_supported: ["code"], code_challenge_methods_supported: ["S256"] };
    json({ ...more, ...Object.fromEntries(named) });
  } else if (url.pathname === "/register") {
    json({ ...JSON.parse(body), client_id: "host" }, 201);
  } else if (url.pathname === "/authorize") {
    said.resources.push(url.searchParams.get("resource"));
    answer.writeHead(302, { location: `${url.searchParams.get("redirect_uri")}?code=right` });
    answer.end();
  } else if (url.pathname === "/token") {
    const aud = new URLSearchParams(body).get("resource");
    said.resources.push(aud);
    json({ access_token: token(aud), token_type: "Bearer", expires_in: 600 });
  } else if (url.pathname === "/jwks") {
    json({ keys: [{ ...keys.publicKey.export({ format: "jwk" }), kid: "one", alg: "ES256", use: "sig" }] });
  } else {
    json({}, 404);
  }
});
await new Promise((done) => proxy.listen(new URL(address).port, "127.0.0.1", done));
await new Promise((done) => provider.listen(new URL(issuer).port, "127.0.0.1", done));

// The host.
const kept = {};
const user = {
  redirectUrl: "http://127.0.0.1:9/back",
  clientMetadata: { client_name: "host", redirect_uris: ["http://127.0.0.1:9/back"] },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens; },
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  redirectToAuthorization: async (url) => {
    const asked = await fetch(url, { redirect: "manual" });
    kept.code = new URL(asked.headers.get("location")).searchParams.get("code");
  },
};
const transport = () => new StreamableHTTPClientTransport(new URL(`${address}/mcp`), { authProvider: user });
try {
  const first = transport();
  try {
    await new Client({ name: "host", version: "1" }).connect(first);
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    await first.finishAuth(kept.code);
  }
  const client = new Client({ name: "host", version: "1" });
  await client.connect(transport());
  said.tools = (await client.listTools()).tools.map((each) => each.name);
} catch (error) {
  said.error = String(error);
}
console.log(JSON.stringify(said));
process.exit(0);
"""


@pytest.mark.parametrize("is_named", [True, False], ids=["by the proxy", "by PUBLIC_URL"])
def test_a_host_signs_in_to_the_address_that_it_calls(base_url: str, tmp_path: Path, *, is_named: bool) -> None:
    with silent_port() as of_proxy, silent_port() as of_provider:
        pass
    address, issuer = f"https://127.0.0.1:{of_proxy}", f"http://127.0.0.1:{of_provider}"
    tokens = {"JWT_JWKS_URL": f"{issuer}/jwks", "JWT_ISSUER": issuer, "JWT_AUDIENCE": f"{address}/mcp"}
    told = {"TRUSTED_PROXIES": "127.0.0.1"} if is_named else {"PUBLIC_URL": address}
    (tmp_path / "host.mjs").write_text(HOST, encoding="utf-8")
    (tmp_path / "node_modules").symlink_to(PACKAGES)
    with started(ROOT, tmp_path, base_url, **tokens, **told) as service:
        done = node("host.mjs", Authority(tmp_path).certificate(), issuer, address, service, cwd=tmp_path)
    said = from_json(done.stdout or f'"{done.stderr!r}"')
    assert "error" not in said, said
    assert said["resources"] == [f"{address}/mcp"] * 2
    assert "getCityTimeFunction" in said["tools"]
