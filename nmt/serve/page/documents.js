// Documents, which the server translates as a whole: it keeps their formats.
import { call, download } from "./api.js";

const PLAIN = [".txt", ".text"]; // these are translated line by line

let endings = null;

// Is a file a document by the ending of its name? The server says which endings it knows.
export async function isDocument(name) {
  try {
    endings ??= (await call("frontend/settings")).supportedFilesFormat.filter((ending) => !PLAIN.includes(ending));
  } catch {
    return false;
  }
  return endings.some((ending) => name.toLowerCase().endsWith(ending));
}

// The translation of a document, as a Blob. Throws ApiError, and AbortError when `signal` says so.
export async function translateDocument(file, engine, signal) {
  const form = new FormData();
  for (const [name, value] of Object.entries({ source: engine.source, target: engine.target, engine: engine.name })) form.append(name, value);
  form.append("file", file, file.name);
  const { translatedFileUrl } = await call("translate_file", form, signal);
  return download(`download_file/${translatedFileUrl.split("/").pop()}`, signal);
}
