"""The least a retrieval can be: the same embedder, a flat FAISS index, twenty rows by key, JSON, through the same web stack.

No keys, no scopes, no words, no ranking, no topics. What HALO takes beyond it is what HALO does.
"""

import sqlite3
import sys
from pathlib import Path

import faiss
import numpy as np
import orjson
import uvicorn
from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from threadpoolctl import threadpool_limits

from halo_server.embedders import open_embedder

_ROWS = 20


def build(directory: Path, texts: list[str]) -> None:
    """Write the rows and the vectors that `serve` reads."""
    embedder = open_embedder("use")
    vectors = np.concatenate([embedder.encode(texts[i : i + 64]) for i in range(0, len(texts), 64)])
    np.save(directory / "vectors.npy", vectors)
    with sqlite3.connect(directory / "floor.db") as connection:
        connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT)")
        connection.executemany("INSERT INTO rows VALUES (?, ?)", enumerate(texts))
    connection.close()


def serve(directory: Path, port: int) -> None:
    """Answer `POST /search {"query"}` with the twenty nearest rows."""
    threadpool_limits(1, user_api="blas")
    embedder = open_embedder("use")
    vectors = np.load(directory / "vectors.npy")
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    connection = sqlite3.connect(directory / "floor.db", check_same_thread=False)
    places = ", ".join("?" * _ROWS)

    def search(query: str) -> bytes:
        faiss.omp_set_num_threads(1)
        _, found = index.search(embedder.encode([query]), _ROWS)
        rows = connection.execute(
            f"SELECT id, body FROM rows WHERE id IN ({places})", found[0].tolist()
        ).fetchall()
        return orjson.dumps({"rows": [{"id": number, "body": body} for number, body in rows]})

    app = FastAPI()

    @app.post("/search")
    async def route(request: Request) -> Response:
        asked = orjson.loads(await request.body())
        return Response(await run_in_threadpool(search, asked["query"]), media_type="application/json")

    uvicorn.run(app, port=port, http="h11", loop="asyncio", access_log=False, log_level="error")


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
