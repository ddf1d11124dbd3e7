// Plays one scene through the AI SDK and prints what came of it as JSON lines.
// node turns.mjs PROVIDER ROOT   with scenes as lines on standard input
import { createInterface } from "node:readline";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embedMany, generateText, jsonSchema, Output, stepCountIs, streamText, tool } from "ai";

globalThis.AI_SDK_LOG_WARNINGS = false;
const [provider, root] = process.argv.slice(2);
const settings = { baseURL: `${root}/v1`, apiKey: "x" };
const compatible = createOpenAICompatible({ name: "puna", ...settings, supportsStructuredOutputs: true, includeUsage: true });
const model = {
  compatible: () => compatible("m"),
  chat: () => createOpenAI(settings).chat("m"),
  responses: () => createOpenAI(settings)("m"),
  anthropic: () => createAnthropic(settings)("m"),
}[provider]();

const called = [];
const object = (properties) => ({ type: "object", properties, required: Object.keys(properties), additionalProperties: false });
const weather = tool({
  description: "Tells the weather.",
  inputSchema: jsonSchema(object({ city: { type: "string" } })),
  execute: async ({ city }) => (called.push(city), "sunny"),
});
const wide = { type: "integer", minimum: -9007199254740991, maximum: 9007199254740991 };
const city = Output.object({ schema: jsonSchema({ ...object({ city: { type: "string" }, degrees: wide }), $schema: "http://json-schema.org/draft-07/schema#" }) });

function asked(scene, more = {}) {
  return { model, prompt: `play: ${scene}`, maxOutputTokens: 200, ...more };
}

async function streamed(scene, more = {}) {
  let error = null;
  const result = streamText({ ...asked(scene, more), onError: (event) => { error = event.error; } });
  let reasoning = "";
  let text = "";
  for await (const part of result.fullStream) {
    if (part.type === "error") error = part.error;
    if (part.type === "text-delta") text += part.text;
    if (part.type === "reasoning-delta") reasoning += part.text;
    if (part.type === "abort") return { aborted: true };
  }
  if (error) return { text, error: String(error.message ?? JSON.stringify(error)) };
  return { text, reasoning, finish: await result.finishReason, usage: (await result.totalUsage).outputTokens, called };
}

const tools = { weather };
const stopWhen = stepCountIs(3);
const kinds = {
  whole: async (scene) => {
    const result = await generateText(asked(scene));
    return { text: result.text, reasoning: result.reasoningText ?? "", finish: result.finishReason, usage: result.usage.outputTokens };
  },
  stream: (scene) => streamed(scene),
  tools: async (scene) => {
    const result = await generateText(asked(scene, { tools, stopWhen }));
    return { text: result.text, called, steps: result.steps.length };
  },
  "stream tools": (scene) => streamed(scene, { tools, stopWhen }),
  object: async (scene) => ({ value: (await generateText(asked(scene, { output: city }))).output }),
  leave: async (scene) => {
    const control = new AbortController();
    return streamed(scene, { abortSignal: control.signal, onChunk: () => control.abort() });
  },
  embed: async () => {
    const { embeddings } = await embedMany({ model: compatible.embeddingModel("m"), values: ["a", "bb"] });
    return { widths: embeddings.map((one) => one.length) };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const [kind, scene] = line.split("/");
  called.length = 0;
  let found;
  try {
    found = await kinds[kind](scene);
  } catch (error) {
    found = { error: String(error.message) };
  }
  console.log(JSON.stringify(found));
}
process.exit(0);
