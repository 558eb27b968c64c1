import * as os from "os";
import * as path from "path";
import * as pulumi from "@pulumi/pulumi";
import { File } from "./file";

const config = new pulumi.Config();
const to = config.get("to") ?? "world";
const directory = config.get("directory") ?? path.join(os.tmpdir(), "postcards");

/** A resource of deployctl's own providers needs no SDK: its type and its properties are enough. */
class Bucket extends pulumi.CustomResource {
    declare readonly name: pulumi.Output<string>;
    declare readonly url: pulumi.Output<string>;
    constructor(name: string, args: { publicRead?: boolean }) {
        super("deployctl:s3:Bucket", name, { ...args, name: undefined, url: undefined });
    }
}

class BucketObject extends pulumi.CustomResource {
    declare readonly url: pulumi.Output<string>;
    constructor(name: string, args: { bucket: pulumi.Input<string>; key: string; content: pulumi.Input<string> }) {
        super("deployctl:s3:Object", name, { ...args, url: undefined });
    }
}

const card = new File("card", {
    path: path.join(directory, `${pulumi.getStack()}.txt`),
    text: `Dear ${to},\n\nthe weather is fine, and everything is deployed.\n`,
});

const letterbox = new Bucket("letterbox", { publicRead: true });
const copy = new BucketObject("copy", { bucket: letterbox.name, key: "card.txt", content: card.text });

export const file = card.path;
export const url = copy.url;
