import { createRoot } from "react-dom/client";
import Chat from "./Chat.jsx";

createRoot(document.body.appendChild(document.createElement("div"))).render(<Chat />);
