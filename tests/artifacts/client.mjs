// GitHub's own client of artifacts, driven from the command line. Prints one line of JSON.
//
//   node client.mjs upload NAME ROOT FILE…
//   node client.mjs download NAME DIRECTORY          of this run, through the runner's service
//   node client.mjs download-of RUN NAME DIRECTORY   of another run, through the REST API
import { DefaultArtifactClient } from '@actions/artifact'

const [command, ...rest] = process.argv.slice(2)
const client = new DefaultArtifactClient()

async function download (name, path, options) {
  const { artifact } = await client.getArtifact(name, options)
  const result = await client.downloadArtifact(artifact.id, { path, expectedHash: artifact.digest, ...options })
  return { ...artifact, ...result }
}

const commands = {
  upload: (name, root, ...files) => client.uploadArtifact(name, files, root),
  download: (name, path) => download(name, path, {}),
  'download-of': (run, name, path) => {
    const [repositoryOwner, repositoryName] = process.env.GITHUB_REPOSITORY.split('/')
    const token = process.env.GITHUB_TOKEN
    return download(name, path, { findBy: { token, workflowRunId: Number(run), repositoryOwner, repositoryName } })
  }
}

const result = await commands[command](...rest)
// The client's own log goes to standard output too; the result is the last line.
console.log(JSON.stringify(result))
